#!/usr/bin/python
# Copyright: The fullpipe maintainers
# MIT OR Apache-2.0 (see https://spdx.org/licenses/)

from __future__ import annotations

DOCUMENTATION = r"""
module: settings
short_description: Read the settings that bound TCP on a host
version_added: 0.1.0
description:
  - Reads what bounds TCP on the host, with the default of its version and what it does, as C(fullpipe settings --json).
  - Changes nothing.
options:
  name:
    description: Only settings whose name contains this.
    type: str
  changed:
    description: Only settings that differ from their default.
    type: bool
    default: false
extends_documentation_fragment:
  - fullpipe.network.program
"""

EXAMPLES = r"""
- name: What bounds TCP here
  fullpipe.network.settings:

- name: What differs from the defaults
  fullpipe.network.settings:
    changed: true
  register: seen

- name: Say it
  ansible.builtin.debug:
    msg: "{{ item.knob }} is {{ item.value }}, by default {{ item.default }}"
  loop: "{{ seen.settings }}"
"""

RETURN = r"""
ansible_facts:
  description: C(fullpipe_settings), the value of each setting by its name, and C(fullpipe_platform).
  returned: success
  type: dict
  sample:
    fullpipe_platform: linux-6.18.44
    fullpipe_settings:
      net.ipv4.tcp_rmem: "4096 131072 6291456"
platform:
  description: The platform and its version.
  returned: success
  type: str
  sample: linux-6.18.44
settings:
  description: The settings, as C(settings[]) of C(fullpipe settings --json).
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.fullpipe.network.plugins.module_utils.program import Program, flag


def main():
    program = Program(dict(name=dict(type='str'), changed=dict(type='bool', default=False)))
    name = program.params['name']
    arguments = ['settings'] + flag('changed', program.params['changed']) + ([] if name is None else [name])
    document = program.run(arguments)[1]
    facts = dict(
        fullpipe_platform=document['platform'],
        fullpipe_settings=dict((one['knob'], one['value']) for one in document['settings']),
    )
    program.leave(ansible_facts=facts, platform=document['platform'], settings=document['settings'])


if __name__ == '__main__':
    main()
