# Copyright: The fullpipe maintainers
# MIT OR Apache-2.0 (see https://spdx.org/licenses/)

"""The program on the managed host: started with --json, its document handed on. Nothing is decided here."""

from __future__ import annotations

import json

from ansible.module_utils.basic import AnsibleModule

SCHEMA = 'fullpipe/2'

# Exit codes (docs/exit-codes.md) beside 0 that come with a whole document.
OK = 0
NOT_AS_EXPECTED = 1
SETTING_UNAVAILABLE = 12
CHANGED_SINCE = 13
JOURNAL_UNUSABLE = 15


class Program(object):
    """A module that calls the program."""

    def __init__(self, options, **more):
        options = dict(options, executable=dict(type='str', default='fullpipe'), state_dir=dict(type='path'))
        self.module = AnsibleModule(argument_spec=options, supports_check_mode=True, **more)
        self.params = self.module.params
        name = self.params['executable']
        self.path = name if '/' in name else self.module.get_bin_path(name)
        if self.path is None:
            self.module.fail_json(
                msg='%s is not on this host; the role fullpipe.network.tune installs it, or give `executable`' % name)

    def run(self, arguments, data=None, accept=(OK,), cwd=None, key='schema'):
        """Its exit code and its document; fails the module with the program's own words where the code is none of `accept`, or the
        document lacks `key`."""
        environment = {}
        if self.params['state_dir'] is not None:
            environment['FULLPIPE_STATE_DIR'] = self.params['state_dir']
        command = [self.path] + [str(argument) for argument in arguments] + ['--json', '--quiet']
        code, said, errors = self.module.run_command(command, data=data, environ_update=environment, cwd=cwd)
        try:
            document = json.loads(said)
        except ValueError:
            self.module.fail_json(
                msg='%s printed no JSON: %s' % (self.path, (errors or said).strip()), rc=code, cmd=command)
        schema = document.get('schema')
        if schema != SCHEMA:
            self.module.fail_json(
                msg='%s prints %s, and this collection reads %s: use the versions of one release' % (self.path, schema, SCHEMA))
        if code not in accept or key not in document:
            error = document.get('error') or {}
            message = error.get('message') or 'ended with exit code %d' % code
            if error.get('hint'):
                message = '%s (%s)' % (message, error['hint'])
            self.module.fail_json(msg=message, kind=error.get('kind'), rc=code, document=document)
        return code, document

    def runs(self, *states):
        """Its runs in these states, newest first."""
        return [run for run in self.run(['history'])[1]['runs'] if run['state'] in states]

    def leave(self, changed=False, **result):
        """Ends the module."""
        self.module.exit_json(changed=changed, **result)


# What a run was applied from, as the journal tells it: a label makes it known on every host, whatever its number there.
SUFFIX = '.fleet.json'
OPEN, ON_TRIAL, KEPT = 'open', 'on_trial', 'kept'


def is_of(run, label=None):
    """Whether a run was applied by this collection, with this label where one is given."""
    if label is not None:
        return run['command'] == 'apply %s%s' % (label, SUFFIX)
    return run['command'] == 'apply -' or run['command'].endswith(SUFFIX)


def option(name, value):
    """`--name value`, or nothing where there is no value."""
    return [] if value is None else ['--' + name, value]


def flag(name, value):
    """`--name` where it is asked for."""
    return ['--' + name] if value else []


def lines(settings):
    """Settings as text for a diff: a line each, in the order of their names; what is absent has none."""
    return ''.join('%s = %s\n' % (knob, ' '.join(value.split())) for knob, value in sorted(settings) if value is not None)


def difference(header, before, after):
    """An entry of Ansible's diff."""
    return dict(before=lines(before), after=lines(after), before_header=header, after_header=header)
