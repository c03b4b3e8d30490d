"""The part of docs/performance.md about SkyPilot, from the figures in a folder: `sky_rows.py FOLDER`."""
import json
import sys


def main():
    folder = sys.argv[1]
    serve, inside, shim = (json.load(open(f'{folder}/{name}.json', encoding='utf-8'))
                           for name in ('serve', 'inside', 'shim'))
    every, beside, peer = serve['all'], serve['beside'], serve['peer']
    grown = serve['lateMib'] / serve['earlyMib']
    # A check that the bench runs has too few requests to say how many a server answers.
    whole = serve['requests'] >= 50_000
    rows = [
        ('judgements a second', f"{every['perSecond']:,.0f}", 'at least 2,000', every['perSecond'] >= 2000),
        ('99 of 100 answers within, the first ones after the start among them', f"{every['p99Ms']:.1f} ms",
         'under 20 ms', every['p99Ms'] < 20),
        (f"memory after {serve['requests']:,} requests against after a tenth of them", f'{grown:.2f} times',
         'at most 1.2 times', grown <= 1.2),
        ('judgements a second beside 64 clients that send a byte a second and 20 malformed bodies a second',
         f"{beside['perSecond']:,.0f}", 'at least 2,000', beside['perSecond'] >= 2000),
        ('malformed bodies answered with anything but 400, or 200 for a task that is no YAML',
         f"{serve['unexpected']} of {serve['malformed']}", 'none', serve['unexpected'] == 0),
        ('against the published Python policy behind a minimal REST server',
         f"{serve['paired'] / peer['perSecond']:.0f} times as many a second", '', None),
        ('the Python policy above SkyPilot\'s own encoding of the request', f"{shim['aboveMs']:.1f} ms",
         'at most 25 ms', shim['aboveMs'] <= 25),
    ]
    print("\n## SkyPilot\n\n`neurarch-gate serve` under 32 connections that stay open, each sending its next request "
          "when the last is answered, the load\non the same cores; 2,000 requests as SkyPilot 0.13 encodes them (8 kB in "
          "the middle), over and over. The Python policy\nis applied to such requests in one process, a process of ours "
          "each time.\n")
    print('| what | figure | bar | held |\n| --- | --- | --- | --- |')
    for name, figure, bar, held in rows:
        told = '' if held is None else 'yes' if held else 'NO' if whole else 'too short a run'
        print(f'| {name} | {figure} | {bar} | {told} |')
    print('\n| what answers | a second | half within | 99 of 100 within |\n| --- | --- | --- | --- |')
    for name, load in (('`neurarch-gate serve`', every), ('the same beside slow clients and malformed bodies', beside),
                       ('`neurarch-skypilot` 0.1.1 behind a threaded Python server, sizes known at once', peer)):
        print(f"| {name} | {load['perSecond']:,.0f} | {load['p50Ms']:.1f} ms | {load['p99Ms']:.1f} ms |")
    print(f"| the same called in a process that has the task decoded already | {1 / inside['firstS']:,.0f} |  |  |")
    print(f"| that, every model sized before | {1 / inside['againS']:,.0f} |  |  |")
    print(f"\nMemory of the server: {serve['earlyMib']:.0f} MiB after {serve['requests'] // 10:,} requests, "
          f"{serve['lateMib']:.0f} MiB after {serve['requests']:,}.\nThe Python policy: {shim['firstMs']:.1f} ms above the "
          f"encoding ({shim['encodeMs']:.1f} ms) the first time a job is seen, {shim['againMs']:.1f} ms when it is applied "
          'again,\nas SkyPilot does two to four times a launch.')


if __name__ == '__main__':
    main()
