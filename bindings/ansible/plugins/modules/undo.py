#!/usr/bin/python
# Copyright: The fullpipe maintainers
# MIT OR Apache-2.0 (see https://spdx.org/licenses/)

from __future__ import annotations

DOCUMENTATION = r"""
module: undo
short_description: Put back what a run changed
version_added: 0.1.0
description:
  - Puts back what was there before a run, exactly, in reverse order, as C(fullpipe undo).
  - A run that is undone already changes nothing. A setting that somebody else changed since is left alone and the module fails,
    unless O(force) is given.
options:
  run:
    description: The run, as M(fullpipe.network.apply) returned it. Either this or O(all).
    type: int
  all:
    description: Every run that is in force on the host.
    type: bool
    default: false
  force:
    description: Also put back settings that somebody changed after the run.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Nothing is put back.
  diff_mode:
    support: full
    description: Settings, and the boot-time files that are put back by name.
extends_documentation_fragment:
  - fullpipe.network.program
"""

EXAMPLES = r"""
- name: Take one run back
  fullpipe.network.undo:
    run: 7

- name: Take everything back
  fullpipe.network.undo:
    all: true
"""

RETURN = r"""
undone:
  description: What was looked at and what became of it, as C(undone[]) of C(fullpipe undo --json).
  returned: success, not in check mode
  type: list
  elements: dict
changes:
  description: What is or would be put back, in that order.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.fullpipe.network.plugins.module_utils.program import NOT_CONFIRMED, OK, Program, difference, flag


def main():
    program = Program(
        dict(run=dict(type='int'), all=dict(type='bool', default=False), force=dict(type='bool', default=False)))
    params = program.params
    if params['all'] == (params['run'] is not None):
        program.module.fail_json(msg='give either the number of a run or `all`')
    arguments = ['undo'] + (['--all'] if params['all'] else [params['run']]) + flag('force', params['force'])
    # Without --yes it tells what it would do, and ends.
    would = program.run(arguments, accept=(OK, NOT_CONFIRMED))[1]
    changes = would.get('changes', [])
    diff = difference(
        'settings and files',
        [(one['knob'] or one['file'], one['from']) for one in changes],
        [(one['knob'] or one['file'], one['to']) for one in changes])
    if program.module.check_mode or not changes:
        program.leave(changed=bool(changes), changes=changes, undone=[], diff=diff)
    done = program.run(arguments + ['--yes'])[1]
    changed = any(one['outcome'] == 'restored' for one in done['undone'])
    program.leave(changed=changed, changes=changes, undone=done['undone'], diff=diff)


if __name__ == '__main__':
    main()
