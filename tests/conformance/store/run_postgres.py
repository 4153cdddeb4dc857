#!/usr/bin/python3
"""Starts PostgreSQL for a C program and runs it: run_postgres.py PROGRAM [ARGUMENTS]. The program finds STK_PG_CONNINFO (and
STK_PG_CONNINFO_TLS), and orders
the server by lines on the descriptor STK_PG_CONTROL ("stop", "abort", "kill", "start"), each answered by "ok" when it is done."""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from harness.postgres import Postgres  # noqa: E402

ENDS = {"stop": signal.SIGINT, "abort": signal.SIGQUIT, "kill": signal.SIGKILL}


def obey(server, control):
    for line in control.makefile("r"):
        order = line.strip()
        try:
            if order == "start":
                server.start()
            else:
                server.stop(ENDS[order])
            control.sendall(b"ok\n")
        except Exception as error:  # the program fails its test, and we say why
            print(f"{order}: {error}", file=sys.stderr)
            control.sendall(b"no\n")


def main():
    ours, theirs = socket.socketpair()
    with Postgres() as server:
        environment = {**os.environ, "STK_PG_CONNINFO": server.conninfo,
                       "STK_PG_CONNINFO_TLS": server.conninfo_tls, "STK_PG_CONTROL": str(theirs.fileno())}
        program = subprocess.Popen(sys.argv[1:], env=environment, pass_fds=[theirs.fileno()])
        theirs.close()
        threading.Thread(target=obey, args=(server, ours), daemon=True).start()
        try:
            status = program.wait()
        finally:
            if program.poll() is None:
                program.kill()
        if status:
            print(server.log()[-3000:], file=sys.stderr)
    return 1 if status else 0


sys.exit(main())
