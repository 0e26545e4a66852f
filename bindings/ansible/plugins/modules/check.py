#!/usr/bin/python
# Copyright: The fullpipe maintainers
# MIT OR Apache-2.0 (see https://spdx.org/licenses/)

from __future__ import annotations

DOCUMENTATION = r"""
module: check
short_description: Measure from a host to another and say what limits each direction
version_added: 0.1.0
description:
  - Measures between the managed host and another that runs C(fullpipe serve) or an iperf3 server, as C(fullpipe check).
  - Changes no setting, and sends as much as the path carries while it lasts. With C(--check) it is skipped.
options:
  host:
    description: The other host, with a port if it isn't 5201.
    type: str
    required: true
  direction:
    description: Which direction of the payload, V(up) being from the managed host.
    type: str
    choices: [up, down, both]
    default: both
  seconds:
    description: Time to measure each direction, such as V(5) or V(500ms). By the round-trip time by default.
    type: str
  omit:
    description: Time before that which doesn't count. Needs O(seconds).
    type: str
  streams:
    description: Connections at once in each direction.
    type: int
    default: 1
  min_rate:
    description: Fail if a direction carries less payload than this.
    type: str
  fail_on:
    description: Fail if one of these limits a direction, such as V(receive_window) or V(send_buffer).
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    support: full
    description: Nothing is sent, and it is skipped.
extends_documentation_fragment:
  - fullpipe.network.program
"""

EXAMPLES = r"""
- name: The path to the other site carries what was ordered, and no setting limits it
  fullpipe.network.check:
    host: 192.0.2.7
    min_rate: 800M
    fail_on: [receive_window, send_buffer]
"""

RETURN = r"""
transfers:
  description: A direction each, as C(transfers[]) of C(fullpipe check --json).
  returned: success or a gate that was not passed
  type: list
  elements: dict
ends:
  description: The names of the two ends.
  returned: success or a gate that was not passed
  type: dict
notes:
  description: What the reader must know besides.
  returned: success or a gate that was not passed
  type: list
  elements: str
expectations:
  description: What C(min_rate) and C(fail_on) ask of each direction and what was found, as C(expectations[]) of C(fullpipe check --json).
  returned: success or a gate that was not passed
  type: list
  elements: dict
missed:
  description: The gates that were not passed, a sentence each.
  returned: success or a gate that was not passed
  type: list
  elements: str
"""

from ansible_collections.fullpipe.network.plugins.module_utils.program import NOT_AS_EXPECTED, OK, Program, option


def main():
    program = Program(
        dict(
            host=dict(type='str', required=True),
            direction=dict(type='str', choices=['up', 'down', 'both'], default='both'),
            seconds=dict(type='str'),
            omit=dict(type='str'),
            streams=dict(type='int', default=1),
            min_rate=dict(type='str'),
            fail_on=dict(type='list', elements='str', default=[]),
        ),
        required_by={'omit': ('seconds',)},
    )
    params = program.params
    if program.module.check_mode:
        program.leave(skipped=True, msg='a measurement loads the path: none in check mode', transfers=[], notes=[], expectations=[], missed=[])
    arguments = ['check', params['host'], '--direction', params['direction'], '--streams', params['streams']]
    for name, key in (('seconds', 'seconds'), ('omit', 'omit'), ('min-rate', 'min_rate')):
        arguments += option(name, params[key])
    if params['fail_on']:
        arguments += option('fail-on', ','.join(params['fail_on']))
    code, document = program.run(arguments, accept=(OK, NOT_AS_EXPECTED))
    result = dict((key, document[key]) for key in ('transfers', 'ends', 'notes', 'expectations'))
    result['missed'] = [
        'gate not passed: %(direction)s: asked for is %(expected)s, found %(found)s' % gate
        for gate in document['expectations'] if not gate['met']]
    if code == NOT_AS_EXPECTED:
        program.module.fail_json(msg='; '.join(result['missed']), **result)
    program.leave(**result)


if __name__ == '__main__':
    main()
