# Copyright: The fullpipe maintainers
# MIT OR Apache-2.0 (see https://spdx.org/licenses/)

"""Five hosts, each with a network, an /etc, a journal and an sshd of its own, tuned by the collection and put back.

Runs as the first process of new namespaces for processes, mounts and the network (unshare --pid --fork --mount-proc --mount
--net), as root, so that nothing stays behind however it ends: five_hosts.py PROGRAM COLLECTIONS FOLDER.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time

HOSTS = 5
PROGRAM, COLLECTIONS, FOLDER = sys.argv[1:4]
BIN = os.path.dirname(sys.executable)
NETWORK = os.path.join(COLLECTIONS, 'ansible_collections/fullpipe/network')
RMEM = '4096\t131072\t262144'
WMEM = '4096\t16384\t262144'
DROP_IN = 'etc/sysctl.d/90-fullpipe.conf'

# Three sites; three paths of different needs. Two hosts share a site.
SITES = ['paris', 'paris', 'tokyo', 'tokyo', 'lima']
INVENTORY = """\
all:
  vars:
    ansible_user: root
    ansible_python_interpreter: {python}
    ansible_ssh_private_key_file: {folder}/key
    ansible_ssh_common_args: -o UserKnownHostsFile={folder}/known_hosts -o StrictHostKeyChecking=yes
    fullpipe_binary: {program}
    fullpipe_rounds: 1
    fullpipe_seconds: 200ms
    fullpipe_omit: 100ms
    # Five hosts share two processors with other tests: what they carry says nothing.
    fullpipe_least_ratio: 0.01
    fullpipe_fail_on: []
    fullpipe_paths:
      - {{a: paris, b: tokyo, rate: 1G, rtt: 80ms, connections: 4}}
      - {{a: paris, b: lima, rate: 100M, rtt: 200ms, connections: 2}}
  hosts:
{hosts}"""


def sh(*words, **more):
    return subprocess.run(words, check=True, **more)


def folder(host, *names):
    return os.path.join(FOLDER, 'h%d' % host, *names)


def in_host(host, *words):
    return ['nsenter', '--target', str(HOLDERS[host].pid), '--net', '--mount', '--'] + list(words)


def address(host):
    return '10.81.0.%d' % host


def network():
    """A switch with the controller and five hosts; every host starts with the same small buffers."""
    sh('mount', '--make-rprivate', '/')
    sh('mount', '-t', 'tmpfs', 'tmpfs', '/run')
    os.mkdir('/run/sshd')
    sh('ip', 'link', 'set', 'lo', 'up')
    sh('ip', 'link', 'add', 'switch', 'type', 'bridge')
    sh('ip', 'address', 'add', '10.81.0.254/24', 'dev', 'switch')
    sh('ip', 'link', 'set', 'switch', 'up')
    sh('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', os.path.join(FOLDER, 'key'))
    os.makedirs('/var/lib/fullpipe', exist_ok=True)
    for number in range(1, HOSTS + 1):
        host(number)


def host(number):
    os.mkdir(folder(number))
    for name in ('state', 'bin'):
        os.mkdir(folder(number, name))
    # Its own: what is written there is seen by no other host, nor by the machine that this runs on.
    shutil.copytree('/etc', folder(number, 'etc'), symlinks=True)
    own = ' && '.join('mount --bind %s %s' % (folder(number, name), place) for name, place in (
        ('etc', '/etc'), ('state', '/var/lib/fullpipe'), ('bin', '/usr/local/bin')))
    # A process holds its namespaces; it says when they are as they shall be.
    HOLDERS[number] = subprocess.Popen(
        ['unshare', '--net', '--mount', '--propagation', 'private', 'sh', '-ec', own + ' && echo made && exec sleep infinity'],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    same('a host', HOLDERS[number].stdout.readline(), 'made\n')
    os.makedirs(folder(number, 'etc/sysctl.d'), exist_ok=True)
    with open(folder(number, 'etc/bad.conf'), 'w') as bad:
        bad.write('net.ipv4.tcp_rmem = 4096\n')
    link = 'h%d' % number
    sh('ip', 'link', 'add', link, 'master', 'switch', 'up', 'type', 'veth', 'peer', 'name', 'eth0')
    sh('ip', 'link', 'set', 'eth0', 'netns', str(HOLDERS[number].pid))
    for words in (['ip', 'link', 'set', 'lo', 'up'], ['ip', 'address', 'add', address(number) + '/24', 'dev', 'eth0'],
                  ['ip', 'link', 'set', 'eth0', 'up'], ['sysctl', '-qw', 'net.ipv4.tcp_rmem=' + RMEM, 'net.ipv4.tcp_wmem=' + WMEM]):
        sh(*in_host(number, *words))
    sshd(number)


def sshd(number):
    """A server with its own key, that lets the controller's key in and nothing else."""
    sh('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', folder(number, 'host_key'))
    with open(folder(number, 'host_key.pub')) as key, open(os.path.join(FOLDER, 'known_hosts'), 'a') as known:
        known.write('%s %s' % (address(number), key.read()))
    with open(folder(number, 'sshd_config'), 'w') as config:
        config.write(
            'ListenAddress %s\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nUsePAM no\nStrictModes no\n'
            'PermitRootLogin prohibit-password\nPasswordAuthentication no\nMaxStartups 100\n'
            % (address(number), folder(number, 'host_key'), os.path.join(FOLDER, 'key.pub')))
    # A locked password keeps root out even with a key.
    shadow = folder(number, 'etc/shadow')
    with open(shadow) as file:
        text = re.sub(r'(?m)^root:[^:]*:', 'root:*:', file.read())
    with open(shadow, 'w') as file:
        file.write(text)
    log = open(folder(number, 'sshd.log'), 'w')
    # Kept: they end with the namespace of processes.
    SERVERS.append(subprocess.Popen(in_host(number, '/usr/sbin/sshd', '-D', '-e', '-f', folder(number, 'sshd_config')),
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log))


# What ends with the namespace of processes: those that hold a host's namespaces, and servers.
HOLDERS = {}
SERVERS = []


def inventory():
    lines = ''.join(
        '    h%d: {ansible_host: %s, fullpipe_site: %s, fullpipe_memory: 512M}\n' % (number, address(number), site)
        for number, site in enumerate(SITES, 1))
    with open(os.path.join(FOLDER, 'inventory.yml'), 'w') as file:
        file.write(INVENTORY.format(folder=FOLDER, program=PROGRAM, python=os.path.realpath(sys.executable), hosts=lines))


def play(name, *options, ends=0):
    """What a playbook printed, and how many changes each host had."""
    environment = dict(
        os.environ, HOME=FOLDER, ANSIBLE_COLLECTIONS_PATH=COLLECTIONS, ANSIBLE_PIPELINING='1', ANSIBLE_NOCOLOR='1',
        ANSIBLE_HOST_PATTERN_MISMATCH='error', ANSIBLE_FORKS='5', ANSIBLE_LOCALHOST_WARNING='0', LC_ALL='C.UTF-8',
        PATH=BIN + os.pathsep + os.environ['PATH'], ANSIBLE_DEPRECATION_WARNINGS='0')
    environment.pop('FULLPIPE_STATE_DIR', None)
    started = time.monotonic()
    done = subprocess.run(
        [os.path.join(BIN, 'ansible-playbook'), '-i', os.path.join(FOLDER, 'inventory.yml'), os.path.join(NETWORK, name)]
        + list(options), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print('%s %s: %.0f s' % (name, ' '.join(options), time.monotonic() - started), flush=True)
    if done.returncode != ends:
        print(done.stdout)
        raise AssertionError('ansible-playbook %s ended with %d' % (name, done.returncode))
    recap = dict(re.findall(r'(?m)^(h\d) +: .*\bchanged=(\d+)', done.stdout))
    return done.stdout, dict((name, int(changes)) for name, changes in recap.items())


def differences(said):
    """The lines of settings that any diff takes away or adds; how often a host tried doesn't count."""
    return sorted(set(re.findall(r'(?m)^[-+](?:net|#)\S* .*$', said)))


def buffers(host):
    said = subprocess.run(
        in_host(host, 'cat', '/proc/sys/net/ipv4/tcp_rmem', '/proc/sys/net/ipv4/tcp_wmem'), check=True, stdout=subprocess.PIPE, text=True)
    return said.stdout.splitlines()


def journal(host):
    """The states of its runs, newest first."""
    said = subprocess.run(in_host(host, '/usr/local/bin/fullpipe', 'history', '--json'), stdout=subprocess.PIPE, text=True, check=True)
    return [(run['run'], run['state']) for run in json.loads(said.stdout)['runs']]


def same(what, found, expected):
    if found != expected:
        raise AssertionError('%s: %r, and not %r' % (what, found, expected))


def mesh(hosts):
    """Measures between hosts over SSH, and gives their directions."""
    config = os.path.join(FOLDER, 'ssh_config')
    with open(config, 'w') as file:
        file.write('User root\nBatchMode yes\nIdentityFile %s\nUserKnownHostsFile %s\n'
                   % (os.path.join(FOLDER, 'key'), os.path.join(FOLDER, 'known_hosts')))
    words = ''
    servers = []
    for number in hosts:
        servers.append(subprocess.Popen(in_host(number, '/usr/local/bin/fullpipe', 'serve', '--json'), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        # It says where it listens when it does.
        while '"port"' not in servers[-1].stdout.readline():
            pass
        words += '[[host]]\nname = "h%d"\naddress = "%s"\nrun = ["ssh", "-F", "%s", "%s"]\nprogram = "/usr/local/bin/fullpipe"\n' % (
            number, address(number), config, address(number))
    file = os.path.join(FOLDER, 'mesh.toml')
    with open(file, 'w') as out:
        out.write(words)
    said = subprocess.run([PROGRAM, 'mesh', file, '--json', '--no-store', '--seconds', '200ms', '--omit', '100ms'],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    for server in servers:
        server.kill()
        server.wait()
    return json.loads(said.stdout)['directions']


EVERY = range(1, HOSTS + 1)
BEFORE = [RMEM, WMEM]


def untouched(when):
    for number in EVERY:
        same('h%d %s' % (number, when), buffers(number), BEFORE)
        same('the drop-in of h%d %s' % (number, when), os.path.exists(folder(number, DROP_IN)), False)


def main():
    network()
    inventory()

    # Before the program is on any host.
    fresh, changes = play('playbooks/tune.yml', '--check', '--diff')
    same('changes told of new hosts', changes, dict(('h%d' % number, 2) for number in EVERY))
    untouched('after --check of new hosts')
    same('what is installed then', [os.listdir(folder(number, 'bin')) for number in EVERY], [[]] * HOSTS)

    said, changes = play('playbooks/tune.yml', '-e', '{"fullpipe_paths": [{"a": "paris", "b": "rome", "rate": "1G", "rtt": "80ms"}]}', ends=2)
    assert 'no host of the play has fullpipe_site: rome' in said, said

    # A canary that fails: a path that carries less than was ordered.
    too_fast = '{"fullpipe_paths": [{"a": "paris", "b": "tokyo", "rate": "1G", "rtt": "80ms", "min_rate": "9000G"}, '\
        '{"a": "paris", "b": "lima", "rate": "100M", "rtt": "200ms"}], "fullpipe_rounds": 2}'
    said, changes = play('playbooks/tune.yml', '-e', too_fast, ends=2)
    assert 'taken back on all hosts: ' in said and 'gate not passed' in said, said
    untouched('after a canary that failed')
    same('the canary', [journal(1), journal(3)], [[(2, 'undone'), (1, 'undone')]] * 2)
    same('the rest', [journal(number) for number in (2, 4, 5)], [[]] * 3)

    wanted, changes = play('playbooks/tune.yml', '--check', '--diff')
    same('changes told', changes, dict(('h%d' % number, 1) for number in EVERY))
    untouched('after --check')
    same('what new hosts were told', differences(fresh), differences(wanted))

    tuned, changes = play('playbooks/tune.yml', '--diff')
    assert all(changes['h%d' % number] > 0 for number in EVERY), changes
    same('the diff', differences(tuned), differences(wanted))
    for number in EVERY:
        assert buffers(number) != BEFORE, number
        with open(folder(number, DROP_IN)) as file:
            assert 'net.ipv4.tcp_rmem' in file.read(), number
    # The buffer of the larger path, not of the other; within the memory.
    largest = [int(buffers(number)[0].split()[2]) for number in EVERY]
    assert largest[0] == largest[1] == largest[2] == largest[3] >= 20000000 > largest[4], largest
    assert max(largest) * 6 <= 512 << 20, largest

    said, changes = play('playbooks/tune.yml')
    same('the second run', changes, dict(('h%d' % number, 0) for number in EVERY))

    play('tests/namespaces/looks.yml')

    # Hosts that nothing is wrong with, over the same SSH.
    directions = mesh([1, 3, 5])
    same('errors of a mesh', [one['error'] for one in directions], [None] * 6)
    assert all(one['rate_bps'] > 0 and one['limiter'] for one in directions), directions

    # By its run, which may have another number on each host; then by the play's label, which is the same on all.
    for number in EVERY:
        same('runs in force on h%d' % number, [state for run, state in journal(number)].count('kept'), 1)
    kept = next(run for run, state in journal(1) if state == 'kept')
    same('undone by run', play('playbooks/undo.yml', '--limit', 'h1', '-e', 'fullpipe_run=%d' % kept)[1], {'h1': 1})
    label = re.search(r'fullpipe_label=([0-9TZ]+)', tuned).group(1)
    same('of another play', play('playbooks/undo.yml', '-e', 'fullpipe_label=other')[1], dict(('h%d' % number, 0) for number in EVERY))
    said, changes = play('playbooks/undo.yml', '--diff', '-e', 'fullpipe_label=' + label)
    same('undone by label', changes, {'h1': 0, 'h2': 1, 'h3': 1, 'h4': 1, 'h5': 1})
    assert re.search(r'(?m)^-net.ipv4.tcp_rmem = ', said) and '90-fullpipe.conf' in said, said
    untouched('after undo')
    not_lasting()
    not_kept()
    changed_since()
    print('five hosts were tuned, proved and put back')


def not_lasting():
    """What is in force and would not stay: of a controller that died in the middle of a trial, and of a play that persisted nothing."""
    quick = ('--limit', 'h1,h3', '-e', '{"fullpipe_paths": [{"a": "paris", "b": "tokyo", "rate": "1G", "rtt": "80ms"}], "fullpipe_prove": false}')
    plan = subprocess.run(in_host(1, '/usr/local/bin/fullpipe', 'plan', '--json', '--platform', 'this', '--path', '1G,80ms', '--memory', '512M'),
                          stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(in_host(1, '/usr/local/bin/fullpipe', 'apply', '-', '--yes', '--json', '--quiet', '--confirm-within', '20m'), input=plan,
                   stdout=subprocess.DEVNULL, check=True)
    same('the trial', journal(1)[0][1], 'on_trial')
    run = str(journal(1)[0][0])
    same('told of h1', play('tests/namespaces/confirmed.yml', '--check', '--limit', 'h1', '-e', 'run=' + run)[1], {'h1': 1})
    told = play('playbooks/tune.yml', '--check', *quick)[1]
    assert told['h1'] > 0, told
    changes = play('playbooks/tune.yml', '-e', 'fullpipe_persist=false', *quick)[1]
    assert changes['h1'] > 0 and changes['h3'] > 0, changes
    same('after the trial of another', journal(1)[0][1], 'kept')
    same('the drop-in', os.path.exists(folder(1, DROP_IN)), False)
    same('again', play('playbooks/tune.yml', '-e', 'fullpipe_persist=false', *quick)[1], {'h1': 0, 'h3': 0})
    # Confirmed again, nothing changes.
    same('confirmed again', play('tests/namespaces/confirmed.yml', '--limit', 'h1', '-e', 'run=%d' % journal(1)[0][0])[1], {'h1': 0})
    changes = play('playbooks/tune.yml', *quick)[1]
    assert changes['h1'] > 0 and os.path.exists(folder(1, DROP_IN)), changes
    same('persisted again', play('playbooks/tune.yml', *quick)[1], {'h1': 0, 'h3': 0})
    play('playbooks/undo.yml')
    untouched('after all')
    # A journal elsewhere, as the role has it.
    elsewhere = ('-e', 'fullpipe_state_dir=/var/lib/fullpipe/elsewhere')
    play('playbooks/tune.yml', *(quick + elsewhere))
    same('undone without it', play('playbooks/undo.yml', '--limit', 'h1,h3')[1], {'h1': 0, 'h3': 0})
    same('undone with it', play('playbooks/undo.yml', '--limit', 'h1,h3', *elsewhere)[1], {'h1': 1, 'h3': 1})
    untouched('after undo elsewhere')


QUICK = ('--limit', 'h1,h3', '-e', '{"fullpipe_paths": [{"a": "paris", "b": "tokyo", "rate": "1G", "rtt": "80ms"}], "fullpipe_prove": false}')


def refusal(said):
    """What the module of h1 failed with."""
    return json.loads(re.search(r'(?m)^fatal: \[h1\]: FAILED! => (.*)$', said).group(1))


def not_kept():
    """Of a trial that ends before anybody confirms it."""
    # However fast the machine is: what is confirmed is looked for only when the trial is over.
    late = {'fullpipe_trial': '1s', 'fullpipe_state_dir': "{{ lookup('pipe', 'sleep 3') if fullpipe_applied is defined else '' }}"}
    said, changes = play('playbooks/tune.yml', '-e', json.dumps(late), *QUICK, ends=2)
    message = refusal(said)['msg']
    assert re.search('h1: it could not be kept there: .*trial', message), message
    untouched('after a trial that nobody kept')


def changed_since():
    """Somebody else sets one of two settings, and adds a line to the drop-in."""
    play('playbooks/tune.yml', *QUICK)
    theirs = '4096\t131072\t999999'
    sh(*in_host(1, 'sysctl', '-qw', 'net.ipv4.tcp_rmem=' + theirs))
    with open(folder(1, DROP_IN), 'a') as file:
        file.write('net.ipv4.tcp_sack = 1\n')
    with open(folder(1, DROP_IN)) as file:
        drop_in = file.read()

    tuned = buffers(1)
    undo = ('playbooks/undo.yml', '--limit', 'h1')
    told, changes = play(*undo, '--check', '--diff')
    same('changes told', changes, {'h1': 1})
    wmem = ['+net.ipv4.tcp_wmem = ' + WMEM.replace('\t', ' '), '-net.ipv4.tcp_wmem = ' + tuned[1].replace('\t', ' ')]
    same('the diff told', differences(told), wmem)
    for words in ('left alone: net.ipv4.tcp_rmem: somebody changed it', '90-fullpipe.conf: somebody changed it', 'without check mode this fails'):
        assert words in re.sub(r'\s+', ' ', told), (words, told)
    same('after --check', buffers(1), tuned)

    done = refusal(play(*undo, ends=2)[0])
    same('changed', (done['changed'], [one['knob'] for one in done['changes']]), (True, ['net.ipv4.tcp_wmem']))
    same('left', sorted(one['kind'] for one in done['left']), ['file', 'setting'])
    assert 'net.ipv4.tcp_rmem: somebody changed it since' in done['msg'] and 'leave_changed' in done['msg'], done['msg']
    same('restored', buffers(1), [theirs, WMEM])
    again = refusal(play(*undo, ends=2)[0])
    same('the second time', (again['changed'], again['left']), (False, done['left']))

    said, changes = play(*undo, '-e', 'fullpipe_leave_changed=true')
    same('left for good', changes, {'h1': 0})
    assert 'left alone: net.ipv4.tcp_rmem' in re.sub(r'\s+', ' ', said), said
    same('from then on', play(*undo)[1], {'h1': 0})
    same('what is theirs', buffers(1), [theirs, WMEM])
    with open(folder(1, DROP_IN)) as file:
        same('their file', file.read(), drop_in)
    os.remove(folder(1, DROP_IN))
    same('of the other host', play('playbooks/undo.yml', '--limit', 'h3')[1], {'h3': 1})
    sh(*in_host(1, 'sysctl', '-qw', 'net.ipv4.tcp_rmem=' + RMEM))


main()
