"""``python -I -S run_served.py SOCKET COMMAND…``: has the server behind the socket run the command.

It has this process's streams, folder and environment, and this process ends as it does. See
`command_server.py`.
"""

import json
import os
import signal
import socket
import sys

path, *words = sys.argv[1:]
with socket.socket(socket.AF_UNIX) as server:
    server.connect(path)
    socket.send_fds(server, [b"\0"], [0, 1, 2])
    server.sendall(json.dumps([words, os.getcwd(), dict(os.environ)]).encode())
    server.shutdown(socket.SHUT_WR)
    answer = server.recv(16)
if not answer:
    sys.exit(f"{words[0]}: the server ended")
status = int(answer)
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
