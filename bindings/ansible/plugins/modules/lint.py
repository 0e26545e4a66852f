#!/usr/bin/python
# Copyright: The fullpipe maintainers
# MIT OR Apache-2.0 (see https://spdx.org/licenses/)

from __future__ import annotations

DOCUMENTATION = r"""
module: lint
short_description: Check files with network settings line by line
version_added: 0.1.0
description:
  - Says of each line of a recipe on the host what does nothing, is refused, harms, or doesn't fit the path, as C(fullpipe lint).
  - Changes nothing. Fails where a finding is as bad as O(fail_on).
options:
  files:
    description: The recipes on the host, such as a file of C(sysctl.d), a TuneD profile or a playbook.
    type: list
    elements: path
    required: true
  platform:
    description: The platform that they will run on. The newest of the file's own kind by default.
    type: str
  rate:
    description: Rate of the path that they are meant to fill.
    type: str
  rtt:
    description: Round-trip time of the path.
    type: str
  fail_on:
    description: Lowest level of a finding that fails the module.
    type: str
    choices: [error, warning, note, never]
    default: error
extends_documentation_fragment:
  - fullpipe.network.program
"""

EXAMPLES = r"""
- name: Nothing there harms a path of 1 Gbit/s and 80 ms
  fullpipe.network.lint:
    files:
      - /etc/sysctl.conf
    rate: 1G
    rtt: 80ms
    fail_on: warning
"""

RETURN = r"""
findings:
  description: What is to be said of a line, as C(findings[]) of C(fullpipe lint --json).
  returned: success or a finding that fails it
  type: list
  elements: dict
"""

from ansible_collections.fullpipe.network.plugins.module_utils.program import NOT_AS_EXPECTED, OK, Program, option


def main():
    program = Program(
        dict(
            files=dict(type='list', elements='path', required=True),
            platform=dict(type='str'),
            rate=dict(type='str'),
            rtt=dict(type='str'),
            fail_on=dict(type='str', choices=['error', 'warning', 'note', 'never'], default='error'),
        ),
        required_together=[('rate', 'rtt')],
    )
    params = program.params
    arguments = ['lint'] + params['files']
    for name in ('platform', 'rate', 'rtt'):
        arguments += option(name, params[name])
    if params['fail_on'] != 'never':
        arguments += option('fail-on', params['fail_on'])
    code, document = program.run(arguments, accept=(OK, NOT_AS_EXPECTED))
    findings = document['findings']
    if code == NOT_AS_EXPECTED and params['fail_on'] != 'never':
        worst = [one for one in findings if one['level'] == 'error'] or [one for one in findings if one['level'] != 'ok']
        words = '; '.join('%s:%s: %s' % (one['file'], one['line'], one['message']) for one in worst[:3])
        program.module.fail_json(msg='%d findings; %s' % (len(findings), words), findings=findings)
    program.leave(findings=findings)


if __name__ == '__main__':
    main()
