"""The part of docs/performance.md about the bridge, from the figures in a folder: `bridge_rows.py FOLDER`."""
import json
import sys


def main():
    folder = sys.argv[1]
    bridge = json.load(open(f'{folder}/bridge.json', encoding='utf-8'))
    with open(f'{folder}/staging.json', encoding='utf-8') as lines:
        staging = json.loads(lines.readline())
    own = bridge['tookMs'] - bridge['callingMs']
    rows = [
        ("an evaluation, from `evaluate`'s start to its end, beside its sky calls", f'{own:.0f} ms', 'at most 60 ms',
         own <= 60),
        ('20,000 files of 200 MB in a git repository staged the first time', f"{staging['firstMs'] / 1000:.2f} s",
         'at most 2 s', staging['firstMs'] <= 2000),
        ('the same again, unchanged', f"{staging['unchangedMs'] / 1000:.2f} s", 'at most 0.5 s',
         staging['unchangedMs'] <= 500),
        ('the same again, one file edited', f"{staging['editedMs'] / 1000:.2f} s", '', None),
        ('the first time against `cp -a`', f"{staging['firstMs'] / staging['copyMs']:.1f} times", '', None),
        ('100 MB of 100-byte lines through the daemon to a client', f"{bridge['logMbPerS']:.0f} MB/s",
         'at least 20 MB/s', bridge['logMbPerS'] >= 20),
        ("the daemon's peak memory during that", f"{bridge['peakMb']:.0f} MB", 'at most 120 MB', bridge['peakMb'] <= 120),
        ('a daemon at rest', f"{bridge['restMb']:.0f} MB", 'at most 60 MB', bridge['restMb'] <= 60),
    ]
    print('\n## The bridge\n\n`neurarch-gate bridge` and `evaluate` over a stand-in for the `sky` command line: an '
          f"evaluation takes {bridge['tookMs']:.0f} ms, of which its\n{bridge['calls']:.0f} sky calls take "
          f"{bridge['callingMs']:.0f} ms when they are made one after another alone (medians).\n")
    print('| what | figure | bar | held |\n| --- | --- | --- | --- |')
    for name, figure, bar, held in rows:
        print(f"| {name} | {figure} | {bar} | {'' if held is None else 'yes' if held else 'NO'} |")


if __name__ == '__main__':
    main()
