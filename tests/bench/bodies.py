"""Writes admin-policy requests as SkyPilot itself encodes them, a JSON body a line: bodies.py COUNT >bodies.jsonl

A realistic mix: many tasks, models, cards and ways to ask, set-up and run scripts of a few kilobytes, and now and then
a task without a GPU, one that serves, or SkyPilot's own controller.
"""
import itertools
import json
import os
import random
import sys
import tempfile

os.environ.update(HOME=tempfile.mkdtemp(prefix='neurarch-bench-'), SKYPILOT_DISABLE_USAGE_COLLECTION='1')

# pylint: disable=wrong-import-position
import sky  # noqa: E402
from sky.server.requests import request_names  # noqa: E402
from sky.utils import config_utils  # noqa: E402

MODELS = (
    'Qwen/Qwen3-0.6B Qwen/Qwen3-1.7B Qwen/Qwen3-4B Qwen/Qwen3-8B Qwen/Qwen3-14B Qwen/Qwen2.5-7B Qwen/Qwen2.5-32B '
    'meta-llama/Llama-2-7b-hf meta-llama/Llama-3.1-8B meta-llama/Llama-3.2-1B meta-llama/Llama-3.1-70B '
    'mistralai/Mistral-7B-v0.1 mistralai/Mixtral-8x7B-v0.1 google/gemma-2-9b google-bert/bert-base-uncased '
    'openai-community/gpt2 microsoft/phi-2 deepseek-ai/DeepSeek-V2').split()
CARDS = ('A100:8', 'A100:1', 'A100-80GB:4', 'H100:8', 'H100:1', 'L4:1', 'T4:4', 'H200:8', 'L40S:2', 'A10G:1',
         {'A100': 8, 'H100': 8}, ['L4:1', 'T4:1'], 'h100:2')
BATCHES, LENGTHS = (1, 2, 4, 8, 16, 32), (512, 1024, 2048, 4096)
NAMES = ['launch'] * 5 + ['validate'] * 4 + ['optimize', 'jobs.launch', 'exec']


def script(draw, lines):
    return '\n'.join(f'echo "step {step} of {draw.random():.6f}" && python -m tool.part{step} --flag{step}=value '
                     f'--out "/data/{step}"  # a line of a script' for step in range(lines)) + '\n'


def task(draw, index):
    envs = {'NEURARCH_MODEL': draw.choice(MODELS), 'NEURARCH_BATCH': str(draw.choice(BATCHES)),
            'NEURARCH_SEQ_LEN': str(draw.choice(LENGTHS)), 'WANDB_PROJECT': f'project-{index % 97}', 'RUN': str(index)}
    if draw.random() < 0.3:
        envs['NEURARCH_LORA_RANK'] = '16'
    if draw.random() < 0.3:
        envs['NEURARCH_PRECISION'] = 'bf16'
    config = {
        'name': f'train-{index}', 'envs': envs, 'secrets': {'HF_TOKEN': 'hf_of_the_bench'},
        'resources': {'accelerators': draw.choice(CARDS), 'disk_size': 512, 'image_id': 'docker:team/image:tag',
                      'labels': {'team': f'team-{index % 13}'}},
        'file_mounts': {'/data': '/tmp', '/checkpoints': '/tmp'},
        'setup': script(draw, draw.randint(2, 15)), 'run': script(draw, draw.randint(2, 30)),
    }
    kind = draw.random()
    if kind < 0.05:
        del config['resources']['accelerators']
    elif kind < 0.1:
        config['num_nodes'] = 2
    elif kind < 0.13:
        config['service'] = {'readiness_probe': '/health', 'replicas': 1}
    return sky.Task.from_yaml_config(config)


def requests(count, seed=6):
    draw = random.Random(seed)
    settings = config_utils.Config.from_dict({'jobs': {'controller': {'resources': {'cpus': 4}}}})
    options = sky.admin_policy.RequestOptions(cluster_name='c', idle_minutes_to_autostop=None, down=False, dryrun=True)
    for index in itertools.islice(itertools.count(), count):
        one = task(draw, index)
        name = 'serve.up' if one.service is not None else draw.choice(NAMES)
        if draw.random() < 0.02:
            name = 'jobs.launch_controller'
        yield sky.UserRequest(task=one, skypilot_config=settings, request_options=options, at_client_side=False,
                              request_name=request_names.AdminPolicyRequestName(name))


def main():
    # The REST client hands the encoded request to `requests.post(json=...)`, which encodes it once more.
    for request in requests(int(sys.argv[1])):
        print(json.dumps(request.encode()))


if __name__ == '__main__':
    main()
