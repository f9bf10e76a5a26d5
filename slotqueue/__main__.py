"""`python -m slotqueue`: the command line."""

from slotqueue.cli import main

if __name__ == "__main__":
    main(prog_name="slotqueue")
