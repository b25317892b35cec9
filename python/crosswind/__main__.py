"""What starts the command line: `crosswind`, and `python -m crosswind` from a source tree."""

import gc
import signal


def main() -> None:
    """Runs the command line and exits."""
    # Ctrl-C while modules are still being imported ends the process at once, without a traceback of Python's.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from crosswind.cli import main as run_command_line
    from crosswind.cli.standard_output import open_standard_files

    # What commands read stays until their end: looking through it for cycles again and again takes a third of the time.
    gc.set_threshold(100_000, 50, 100)
    open_standard_files()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run_command_line()


if __name__ == "__main__":
    main()
