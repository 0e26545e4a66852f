# Copyright: The fullpipe maintainers
# MIT OR Apache-2.0 (see https://spdx.org/licenses/)

"""Options that every module of the collection takes."""

from __future__ import annotations


class ModuleDocFragment(object):
    """The program and its state folder."""

    DOCUMENTATION = r"""
options:
  executable:
    description: The program on the managed host, a path or a name that is looked for in its E(PATH).
    type: str
    default: fullpipe
  state_dir:
    description:
      - Where the journal is, as E(FULLPIPE_STATE_DIR).
      - The program's usual place by default.
    type: path
requirements:
  - fullpipe 0.1.0 or newer on the managed host
author:
  - The fullpipe maintainers (@fullpipe)
"""
