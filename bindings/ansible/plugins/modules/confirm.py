#!/usr/bin/python
# Copyright: The fullpipe maintainers
# MIT OR Apache-2.0 (see https://spdx.org/licenses/)

from __future__ import annotations

DOCUMENTATION = r"""
module: confirm
short_description: Keep changes that are on trial
version_added: 0.1.0
description:
  - Keeps what M(fullpipe.network.apply) with O(fullpipe.network.apply#module:confirm_within) put in force, as C(fullpipe confirm).
  - A run that was kept already changes nothing.
options:
  run:
    description: The run.
    type: int
    required: true
attributes:
  check_mode:
    support: full
    description: Nothing is confirmed.
extends_documentation_fragment:
  - fullpipe.network.program
"""

EXAMPLES = r"""
- name: It helped, so it stays
  fullpipe.network.confirm:
    run: "{{ applied.run }}"
"""

RETURN = r"""
boot_files:
  description: Boot-time files that were written.
  returned: success
  type: list
  elements: str
"""

from ansible_collections.fullpipe.network.plugins.module_utils.program import KEPT, ON_TRIAL, Program


def main():
    program = Program(dict(run=dict(type='int', required=True)))
    number = program.params['run']
    if any(run['run'] == number for run in program.runs(KEPT)):
        program.leave(boot_files=[])
    if program.module.check_mode:
        if not any(run['run'] == number for run in program.runs(ON_TRIAL)):
            program.module.fail_json(msg='no run %d is on trial' % number)
        program.leave(changed=True, boot_files=[])
    document = program.run(['confirm', number])[1]
    program.leave(changed=True, boot_files=document['boot_files'])


if __name__ == '__main__':
    main()
