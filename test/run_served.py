"""``python -I -S run_served.py SOCKET COMMAND…``: has the server behind the socket run the command.

It has this process's streams, folder and environment, and this process ends as it does. See
`command_server.py`. Of `socket` only what is compiled is imported: the rest takes longer to import
than everything else here.
"""

import _socket
import os
import sys

path, *words = sys.argv[1:]
server = _socket.socket(_socket.AF_UNIX)
server.connect(path)
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
server.sendmsg([b"\0"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
parts = [str(len(words)), *words, os.getcwd(), *(f"{k}={v}" for k, v in os.environ.items())]
server.sendall(os.fsencode("\0".join(parts)))
server.shutdown(_socket.SHUT_WR)
answer = server.recv(16)
if not answer:
    sys.exit(f"{words[0]}: the server ended")
status = int(answer)
if status < 0:
    import signal

    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
