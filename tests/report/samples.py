"""The command line of programs that write made-up results."""
import argparse
import json


def write_sample(description, makers):
    """The one that is asked for, of functions by name, as JSON into a file."""
    arguments = argparse.ArgumentParser(description=description)
    which = arguments.add_mutually_exclusive_group(required=True)
    for name in makers:
        which.add_argument(f"--{name}", dest="sample", action="store_const", const=name)
    arguments.add_argument("file")
    options = arguments.parse_args()
    with open(options.file, "w", encoding="utf-8") as file:
        json.dump(makers[options.sample](), file)
