#!/usr/bin/python
# Copyright: The fullpipe maintainers
# MIT OR Apache-2.0 (see https://spdx.org/licenses/)

from __future__ import annotations

DOCUMENTATION = r"""
module: plan
short_description: Plan the settings of a host for the paths that end there
version_added: 0.1.0
description:
  - Says what to set on the host for the rate and the round-trip time of its paths, as C(fullpipe plan --json).
  - Several paths are planned as a whole. The one with the largest product of rate and round-trip time decides how large
    a buffer may become, and the connections of all of them count against the memory.
  - Changes nothing. O(fullpipe.network.apply#module:plan) takes the result.
options:
  paths:
    description: The paths that end at the host.
    type: list
    elements: dict
    required: true
    suboptions:
      rate:
        description: Rate of the path, such as V(1G).
        type: str
        required: true
      rtt:
        description: Round-trip time of the path, such as V(80ms).
        type: str
        required: true
      connections:
        description: Connections on it that may fill their buffers at the same time. The planner's usual number by default.
        type: int
  memory:
    description:
      - Most memory for the TCP buffers of the host, such as V(512M).
      - Without it the kernel's own bound counts.
    type: str
  goal:
    description: What the host is for.
    type: str
    choices: [bulk, interactive]
    default: bulk
  persist:
    description:
      - Also plan what this collection has in force already, as long as no boot-time file has it.
      - The planner finds nothing to set there, and M(fullpipe.network.apply) would be given nothing to persist.
    type: bool
    default: false
extends_documentation_fragment:
  - fullpipe.network.program
"""

EXAMPLES = r"""
- name: Plan for two paths with a bound for their memory
  fullpipe.network.plan:
    memory: 512M
    paths:
      - rate: 1G
        rtt: 80ms
        connections: 4
      - rate: 100M
        rtt: 240ms
  register: planned
"""

RETURN = r"""
plan:
  description: The document of C(fullpipe plan --json).
  returned: success
  type: dict
changes:
  description: What to set, with reason, arithmetic, memory and undo.
  returned: success
  type: list
  elements: dict
notes:
  description: What is left alone, and why. A memory bound that the paths don't fit into is here.
  returned: success
  type: list
  elements: str
"""

import json

from ansible_collections.fullpipe.network.plugins.module_utils.program import KEPT, ON_TRIAL, Program, flag, is_of, option


def unfinished(program, planned):
    """Changes that are in force and won't stay: not in a boot-time file, or, where nothing may be taken back first, on trial."""
    states = ((KEPT,) if program.params['persist'] else ()) + ((ON_TRIAL,) if program.module.check_mode else ())
    found = {}
    for run in program.runs(*states) if states else []:
        for entry in run['entries'] if is_of(run) else []:
            if entry['kind'] == 'setting' and entry['knob'] not in planned:
                # The newest run of a setting counts.
                found.setdefault(entry['knob'], dict(knob=entry['knob'], to=entry['intended'], **{'from': entry['before']}))
    return list(found.values())


def main():
    path = dict(
        rate=dict(type='str', required=True), rtt=dict(type='str', required=True), connections=dict(type='int'))
    program = Program(dict(
        paths=dict(type='list', elements='dict', required=True, options=path),
        memory=dict(type='str'),
        goal=dict(type='str', choices=['bulk', 'interactive'], default='bulk'),
        persist=dict(type='bool', default=False),
    ))
    arguments = ['plan', '--platform', 'this', '--goal', program.params['goal']]
    arguments += option('memory', program.params['memory'])
    for one in program.params['paths']:
        words = [one['rate'], one['rtt']] + ([] if one['connections'] is None else [str(one['connections'])])
        arguments += option('path', ','.join(words))
    document = program.run(arguments)[1]
    more = unfinished(program, [one['knob'] for one in document['changes']])
    if more:
        said = 'in force by an earlier run, which does not last'
        rest = dict(host=document['platform'], reason=said, arithmetic='', source='', takes_effect='live', memory_worst_case=None)
        whole = dict(document, changes=document['changes'] + [
            dict(rest, undo="sysctl -w %s='%s'" % (one['knob'], one['from']), **one) for one in more])
        # What lasts already, a boot-time file has: applying it would do nothing.
        would = program.run(['apply', '-', '--dry-run'] + flag('persist', program.params['persist']), data=json.dumps(whole))[1]
        if would['files'] or any(one['from'] != one['to'] for one in would['changes']):
            document = whole
    program.leave(plan=document, changes=document['changes'], notes=document['notes'])


if __name__ == '__main__':
    main()
