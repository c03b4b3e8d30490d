"""The part of docs/performance.md about start-up: each command's cold start against the smallest program that the same
compiler makes, and what it may take of that.

    startup.py EXECUTABLE HELLO ROUNDS ROOT WORK

Prints Markdown. Each command is run in turns with the peer (interleave.py), ratios are of the fastest rounds. A run of
fewer than 20 rounds only shows that everything runs: it holds nothing against a budget.
"""
import json
import os
import subprocess
import sys

# Command, what is behind it, times the peer that it may take. `slurm` has its own table and bar; what a person waits for
# may take as long as is not noticed (a tenth of a second), what loads every command's description the longest.
BUDGETS = [
    ('--version', '', 2.0),
    ('--help', 'every command\'s description', 6.0),
    ('judge --model Qwen/Qwen3-8B --batch 1 --lora-rank 16 --request H100:1', 'sized anew', 5.0),
    ('judge --slurm {root}/examples/lora-qwen3-8b.sbatch', 'sized anew', 5.0),
    ('judge --skypilot {root}/examples/lora-qwen3-8b.sky.yaml', 'YAML, sized anew', 7.0),
    ('size Qwen/Qwen3-8B --batch 8 --json', 'sized anew', 5.0),
    ('cards', '', 4.0),
    ('cards --config {root}/examples/gate.toml', 'TOML and its checks', 4.0),
    ('rightsize {work}/jobs.csv', 'two models, each sized for every card', 8.0),
    ('policy check {root}/examples/neurarch.yml', 'YAML and its checks', 7.0),
    ('policy explain', '', 4.0),
    ('schema policy', '', 3.0),
    ('print-lua', '', 3.0),
    ('print-python', '', 3.0),
    ('bridge capabilities', '', 3.0),
    ('completion bash', 'every command\'s description', 7.0),
    ('man', 'every command\'s description', 7.0),
    ('self-test', 'three jobs sized, the catalogue read', 9.0),
]


def main():
    executable, hello, rounds, root, work = sys.argv[1:]
    with open(f'{work}/jobs.csv', 'w', encoding='utf-8') as file:
        file.write('job_id,model,batch,seq_len,gpu,gpus\n1,Qwen/Qwen3-8B,8,2048,H100,8\n2,gpt2,4,1024,A100-80GB,1\n')
    interleave = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'interleave.py')
    told = int(rounds) >= 20
    print('\n## Start-up\n\nEach command cold, in turns with the compiled `console.log`; a budget is what it may take of '
          'that.\n')
    print('| command | with | takes | times the `console.log` | budget | held |\n| --- | --- | --- | --- | --- | --- |')
    for line, about, budget in BUDGETS:
        words = f'{executable} ' + line.format(root=root, work=work)
        ran = subprocess.run([sys.executable, interleave, rounds, f'gate={words}', f'peer={hello}'],
                             check=True, stdout=subprocess.PIPE)
        figures = json.loads(ran.stdout)
        ratio = figures['gate']['bestMs'] / figures['peer']['bestMs']
        held = 'too short a run' if not told else 'yes' if ratio <= budget else 'NO'
        shown = line.replace('{root}/', '').replace('{work}/', '')
        print(f"| `{shown}` | {about} | {figures['gate']['bestMs']:.1f} ms | {ratio:.1f} | {budget:.1f} | {held} |")


if __name__ == '__main__':
    main()
