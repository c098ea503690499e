"""``exits.py STATUS COMMAND…``: runs the command; succeeds when it ends with that status.

For RUN lines of tests that expect a failure. Its standard error goes to standard output.
"""

import os
import sys

expected, command = int(sys.argv[1]), sys.argv[2:]
to_output = [(os.POSIX_SPAWN_DUP2, 1, 2)]
child = os.posix_spawnp(command[0], command, os.environ, file_actions=to_output)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if status != expected:
    print(f"expected exit status {expected}, got {status}: {command}", file=sys.stderr)
    sys.exit(1)
