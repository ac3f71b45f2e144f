"""`python -m gradcli`."""

from gradcli.cli import main

if __name__ == "__main__":
    main()
