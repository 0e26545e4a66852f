#!/usr/bin/python
# Copyright: The fullpipe maintainers
# MIT OR Apache-2.0 (see https://spdx.org/licenses/)

from __future__ import annotations

DOCUMENTATION = r"""
module: apply
short_description: Apply a plan so that it can be undone
version_added: 0.1.0
description:
  - Puts the changes of a plan in force, all or none, as C(fullpipe apply). Each is journalled on the host, written and read back.
  - What is as planned already is left alone, so that a second time changes nothing.
  - With C(--check) nothing is written, and C(--diff) shows what would be.
options:
  plan:
    description: What M(fullpipe.network.plan) returned as RV(fullpipe.network.plan#module:plan), or any document that C(fullpipe apply) takes.
    type: dict
    required: true
  persist:
    description: Also write a boot-time file, so that the settings survive a restart.
    type: bool
    default: false
  confirm_within:
    description:
      - A time such as V(10m). Everything is taken back on the host after it, unless M(fullpipe.network.confirm) comes.
      - A process on the host does that, so that it also happens when the host can't be reached any more.
    type: str
  label:
    description:
      - A name for the run, of letters, digits, dots and hyphens, which C(fullpipe history) shows.
      - By it M(fullpipe.network.undo) finds the run on any number of hosts.
    type: str
  host:
    description: Which host of the plan this is. By its name or its platform by default.
    type: str
  force:
    description: Apply even if a setting has changed since the plan was made.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Nothing is written.
  diff_mode:
    support: full
    description: Settings, and lines of boot-time files.
extends_documentation_fragment:
  - fullpipe.network.program
"""

EXAMPLES = r"""
- name: Put it in force until the next restart
  fullpipe.network.apply:
    plan: "{{ planned.plan }}"
  register: applied

- name: On trial, with a boot-time file once it is confirmed
  fullpipe.network.apply:
    plan: "{{ planned.plan }}"
    persist: true
    confirm_within: 10m
"""

RETURN = r"""
run:
  description: The run, as M(fullpipe.network.undo) takes it. Null where everything had these values already, or in check mode.
  returned: success
  type: int
  sample: 7
settings:
  description: What is or would be changed.
  returned: success
  type: list
  elements: dict
  contains:
    knob:
      description: The setting.
      type: str
    before:
      description: What was there.
      type: str
    after:
      description: What is there now.
      type: str
notes:
  description: What is left alone, and why.
  returned: success
  type: list
  elements: str
boot_files:
  description: Boot-time files that were written.
  returned: success
  type: list
  elements: str
"""

import json
import os
import re

from ansible_collections.fullpipe.network.plugins.module_utils.program import SUFFIX, Program, difference, flag, option


def file_difference(one):
    """The lines of a boot-time file that go and come."""
    before, after = [''.join(line + '\n' for line in one[key]) for key in ('removed', 'added')]
    return dict(before=before, after=after, before_header=one['path'], after_header=one['path'])


def main():
    program = Program(dict(
        plan=dict(type='dict', required=True),
        persist=dict(type='bool', default=False),
        confirm_within=dict(type='str'),
        label=dict(type='str'),
        host=dict(type='str'),
        force=dict(type='bool', default=False),
    ))
    params, plan = program.params, json.dumps(program.params['plan'])
    name = '-'
    if params['label'] is not None:
        if not re.match(r'[A-Za-z0-9][A-Za-z0-9.-]*\Z', params['label']):
            program.module.fail_json(msg='the label %r has more in it than letters, digits, dots and hyphens' % params['label'])
        name = params['label'] + SUFFIX
        with open(os.path.join(program.module.tmpdir, name), 'w') as file:
            file.write(plan)
    options = option('host', params['host']) + flag('persist', params['persist']) + flag('force', params['force'])
    where = dict(data=plan, cwd=program.module.tmpdir)

    would = program.run(['apply', name] + options + ['--dry-run'], **where)[1]
    if program.module.check_mode:
        run, notes, boot_files = None, would['notes'], []
        settings = [dict(knob=one['knob'], before=one['from'], after=one['to']) for one in would['changes'] if one['from'] != one['to']]
        changed = bool(settings or would['files'])
    else:
        done = program.run(
            ['apply', name] + options + ['--yes'] + option('confirm-within', params['confirm_within']), **where)[1]
        run, notes, boot_files = done['run'], done['notes'], done['boot_files']
        settings = [
            dict(knob=one['knob'], before=one['before'], after=one['wanted'] if one['at_start'] else one['now'])
            for one in done['applied'] if not one['unchanged']]
        changed = run is not None
    diff = []
    if settings:
        diff.append(difference(
            'settings', [(one['knob'], one['before']) for one in settings], [(one['knob'], one['after']) for one in settings]))
    if changed:
        diff += [file_difference(one) for one in would['files'] if one['removed'] or one['added']]
    program.leave(changed=changed, run=run, settings=settings, notes=notes, boot_files=boot_files, diff=diff)


if __name__ == '__main__':
    main()
