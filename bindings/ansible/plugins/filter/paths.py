# Copyright: The fullpipe maintainers
# MIT OR Apache-2.0 (see https://spdx.org/licenses/)

"""Paths between sites as what hosts plan for, the pairs of hosts that prove them, and what the pairs showed."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError

# What a path must say, and what else it may say.
NEEDED = ('a', 'b', 'rate', 'rtt')
KNOWN = NEEDED + ('connections', 'min_rate')


def checked(paths):
    """The paths, if each can be understood."""
    for number, path in enumerate(paths, 1):
        missing = [key for key in NEEDED if not path.get(key)]
        unknown = sorted(set(path) - set(KNOWN))
        if missing or unknown:
            raise AnsibleFilterError(
                'path %d: %s' % (number, 'without %s' % ', '.join(missing) if missing else 'nobody knows %s' % ', '.join(unknown)))
        if path['a'] == path['b']:
            raise AnsibleFilterError('path %d goes from %s to itself' % (number, path['a']))
    return paths


def of_site(paths, site):
    """What a host of that site plans for: rate, rtt and connections of each path that ends there."""
    return [
        dict((key, path[key]) for key in ('rate', 'rtt', 'connections') if path.get(key))
        for path in checked(paths) if site in (path['a'], path['b'])]


def pairs(paths, hosts, hostvars):
    """Pairs of hosts, so that each host of a path's two sites is in one of them at least."""
    sites = {}
    for host in hosts:
        sites.setdefault(hostvars[host].get('fullpipe_site'), []).append(host)
    found = []
    for path in checked(paths):
        for end in ('a', 'b'):
            if path[end] not in sites:
                raise AnsibleFilterError(
                    'no host of the play has fullpipe_site: %s, and a path ends there' % path[end])
        ends = [sites[path['a']], sites[path['b']]]
        for number in range(max(len(end) for end in ends)):
            a, b = [end[number % len(end)] for end in ends]
            found.append(dict(a=a, b=b, name='%s -> %s' % (a, b), min_rate=path.get('min_rate')))
    return found


def of_direction(rounds, name, direction):
    """Rates and the last limiter of one direction of one pair, a round each."""
    seen = []
    for result in rounds:
        if result['item']['name'] == name:
            seen += [one for one in result['transfers'] if one['direction'] == direction]
    return [one['rate_bps'] for one in seen], seen[-1]['diagnosis']['limiter'] if seen else None


def judged(before, after, least_ratio):
    """What the pairs showed, a direction each. The rounds alternate, so that each `after` has its own `before`."""
    shown = []
    troubles = []
    for result in before + after:
        if 'transfers' not in result:
            troubles.append('%s: %s' % (result['item']['name'], result.get('msg', 'not measured')))
    before, after = [[one for one in results if 'transfers' in one] for results in (before, after)]
    for name in sorted(set(result['item']['name'] for result in after)):
        for direction in ('a->b', 'b->a'):
            rates, was = of_direction(before, name, direction)
            later, limiter = of_direction(after, name, direction)
            ratios = [new / old for old, new in zip(rates, later) if old]
            if not ratios:
                continue
            if max(ratios) < least_ratio:
                verdict = 'harmed'
                troubles.append('%s %s: after every change at most %.2f of the rate before' % (name, direction, max(ratios)))
            elif min(ratios) > 1 / least_ratio:
                verdict = 'helped'
            else:
                verdict = 'not_shown'
            shown.append(dict(
                pair=name, direction=direction, before_bps=rates, after_bps=later, ratios=[round(one, 3) for one in ratios],
                limiter_before=was, limiter_after=limiter, verdict=verdict))
    last = {}
    for result in after:
        last[result['item']['name']] = result
    for name in sorted(last):
        troubles += ['%s: %s' % (name, gate) for gate in last[name]['missed']]
    return dict(shown=shown, troubles=troubles)


class FilterModule(object):
    """The filters."""

    def filters(self):
        return dict(of_site=of_site, pairs=pairs, judged=judged)
