"""``exits.py STATUS COMMAND…``: runs the command; succeeds when it ends with that status.

For RUN lines of tests that expect a failure. Its standard error goes to standard output.
"""

import subprocess
import sys

expected, command = int(sys.argv[1]), sys.argv[2:]
status = subprocess.run(command, stderr=subprocess.STDOUT, check=False).returncode
if status != expected:
    print(f"expected exit status {expected}, got {status}: {command}", file=sys.stderr)
    sys.exit(1)
