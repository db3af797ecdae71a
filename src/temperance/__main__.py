"""``python -m temperance`` is the command line."""

from temperance.app.cli import main

if __name__ == "__main__":
    main()
