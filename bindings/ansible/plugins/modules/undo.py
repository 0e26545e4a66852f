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
  - A run that is undone already changes nothing.
  - What somebody else changed since, a setting or a boot-time file, is left alone; the rest is put back. The module then fails, each time,
    names what it left, and says whether it changed anything. O(force) puts that back, too; O(leave_changed) leaves it for good.
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
  leave_changed:
    description:
      - Leave what somebody changed after the run to them, for good. The module warns and doesn't fail, and no later undo looks at it again.
      - A boot-time file that is left so goes on setting what it sets.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Nothing is put back. What would be left alone is a warning, and so is that the module would fail.
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

- name: Take everything back but what somebody has changed since, which stays theirs
  fullpipe.network.undo:
    all: true
    leave_changed: true
"""

RETURN = r"""
undone:
  description: What was looked at and what became or would become of it, as C(undone[]) of C(fullpipe undo --json).
  returned: always
  type: list
  elements: dict
changes:
  description: What was or would be put back, in that order.
  returned: always
  type: list
  elements: dict
left:
  description: Those of RV(undone) that were or would be left alone.
  returned: always
  type: list
  elements: dict
"""

from ansible_collections.fullpipe.network.plugins.module_utils.program import (
    CHANGED_SINCE, JOURNAL_UNUSABLE, KEPT, NOT_AS_EXPECTED, OK, ON_TRIAL, OPEN, SETTING_UNAVAILABLE, Program, difference, flag, is_of)

# With these, too, the document tells what became of each setting.
WITH_UNDONE = (OK, NOT_AS_EXPECTED, SETTING_UNAVAILABLE, CHANGED_SINCE, JOURNAL_UNUSABLE)


def targets(program):
    """What to undo, as words of the command; none where no run is meant."""
    params = program.params
    if [params['run'] is not None, params['label'] is not None, params['on_trial'], params['all']].count(True) != 1:
        program.module.fail_json(msg='give one of `run`, `label`, `on_trial` and `all`')
    if params['all']:
        return ['--all']
    if params['run'] is not None:
        return [params['run']]
    states = (ON_TRIAL,) if params['on_trial'] else (OPEN, ON_TRIAL, KEPT)
    return [run['run'] for run in program.runs(*states) if is_of(run, params['label'])]


def differences(changes):
    """Settings together, and each boot-time file by itself."""
    settings = [one for one in changes if one['knob']]
    diff = []
    if settings:
        diff.append(difference('settings', [(one['knob'], one['from']) for one in settings], [(one['knob'], one['to']) for one in settings]))
    for one in changes:
        if one['file']:
            diff.append(dict(before=one['from'] or '', after=one['to'] or '', before_header=one['file'], after_header=one['file']))
    return diff


def on_one_line(value):
    return 'absent' if value is None else ' '.join(value.split())


def reason(one):
    """Why an entry was left alone."""
    if one['outcome'] not in ('changed_since', 'left'):
        return '%s: %s' % (one['place'], one['why'])
    if one['by'] is not None:
        return '%s: run %d changed it; undo that first' % (one['place'], one['by'])
    if one['kind'] == 'file':
        return '%s: somebody changed it since, and it stays as it is, with what it sets' % one['place']
    return '%s: somebody changed it since, it is %s and not %s' % (one['place'], on_one_line(one['now']), on_one_line(one['ours']))


def main():
    program = Program(dict(
        run=dict(type='int'),
        label=dict(type='str'),
        on_trial=dict(type='bool', default=False),
        all=dict(type='bool', default=False),
        force=dict(type='bool', default=False),
        leave_changed=dict(type='bool', default=False),
    ))
    module, params = program.module, program.params
    if params['force'] and params['leave_changed']:
        module.fail_json(msg='give one of `force` and `leave_changed`')
    words = targets(program)
    if not words:
        program.leave(changes=[], undone=[], left=[], diff=[])
    # In check mode it tells what it would do, in the same words.
    arguments = ['undo'] + words + flag('force', params['force']) + flag('leave-changed', params['leave_changed'])
    code, document = program.run(arguments + ['--dry-run' if module.check_mode else '--yes'], accept=WITH_UNDONE, key='undone')
    changes, undone = document['changes'], document['undone']
    left = [one for one in undone if one['outcome'] not in ('restored', 'already_back', 'gone')]
    result = dict(changed=bool(changes), changes=changes, undone=undone, left=left, diff=differences(changes))
    for one in left:
        module.warn('left alone: ' + reason(one))
    if code == OK:
        program.leave(**result)
    message = 'not all was put back: %s' % ('; '.join(reason(one) for one in left) or document['journal_problem'] or 'the journal is damaged')
    if any(one['outcome'] == 'changed_since' and one['by'] is None for one in left):
        message += ' (with `force` it is put back all the same; with `leave_changed` it is left for good, and no later undo fails of it)'
    if module.check_mode:
        # A look that failed would show no diff.
        module.warn('without check mode this fails: ' + message)
        program.leave(**result)
    module.fail_json(msg=message, rc=code, **result)


if __name__ == '__main__':
    main()
