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
    description: The run, as M(fullpipe.network.apply) returned it. One of this, O(label), O(on_trial) and O(all).
    type: int
  label:
    description: The runs that M(fullpipe.network.apply) gave this label, whatever their numbers. A host without one is left as it is.
    type: str
  on_trial:
    description: What this collection put in force and nobody has confirmed yet, as where a play was cut off.
    type: bool
    default: false
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
    description: Settings, and boot-time files line by line.
extends_documentation_fragment:
  - fullpipe.network.program
"""

EXAMPLES = r"""
- name: Take one run back
  fullpipe.network.undo:
    run: 7

- name: Take back what one play did, on all hosts
  fullpipe.network.undo:
    label: 20261125T142500Z

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

from ansible_collections.fullpipe.network.plugins.module_utils.program import KEPT, NOT_CONFIRMED, OK, ON_TRIAL, Program, difference, flag, is_of


def targets(program):
    """What to undo, as the words of the command, one after the other."""
    params = program.params
    if [params['run'] is not None, params['label'] is not None, params['on_trial'], params['all']].count(True) != 1:
        program.module.fail_json(msg='give one of `run`, `label`, `on_trial` and `all`')
    if params['all']:
        return ['--all']
    if params['run'] is not None:
        return [params['run']]
    states = (ON_TRIAL,) if params['on_trial'] else (ON_TRIAL, KEPT)
    return [run['run'] for run in program.runs(*states) if is_of(run, params['label'])]


def differences(changes):
    """Settings together, and each boot-time file by itself."""
    settings = [one for one in changes if one['knob']]
    diff = [difference('settings', [(one['knob'], one['from']) for one in settings], [(one['knob'], one['to']) for one in settings])]
    for one in changes:
        if not one['knob']:
            diff.append(dict(before=one['from'] or '', after=one['to'] or '', before_header=one['file'], after_header=one['file']))
    return diff


def main():
    program = Program(dict(
        run=dict(type='int'),
        label=dict(type='str'),
        on_trial=dict(type='bool', default=False),
        all=dict(type='bool', default=False),
        force=dict(type='bool', default=False),
    ))
    changes, undone = [], []
    for target in targets(program):
        arguments = ['undo', target] + flag('force', program.params['force'])
        # Without --yes it tells what it would do, and ends.
        would = program.run(arguments, accept=(OK, NOT_CONFIRMED))[1].get('changes', [])
        changes += would
        if would and not program.module.check_mode:
            undone += program.run(arguments + ['--yes'])[1]['undone']
    changed = bool(changes) if program.module.check_mode else any(one['outcome'] == 'restored' for one in undone)
    program.leave(changed=changed, changes=changes, undone=undone, diff=differences(changes))


if __name__ == '__main__':
    main()
