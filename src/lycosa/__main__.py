"""`python -m lycosa` is the same as the command `lycosa`."""

from lycosa.cli import main

if __name__ == "__main__":
    main()
