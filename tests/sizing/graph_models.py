"""Modules to trace and to train: nets of images, sound, video, text and tables as people write them.

`MODELS` maps a name to (a factory, the inputs of one sample, the loss). An input is a shape of floats, or
("ids", words, length); a loss is "classes" (cross entropy of a row of scores), "tokens" (of a row a token),
"image" (mean square against an image of the same shape).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Residual(nn.Module):
    """A basic block in the manner of torchvision: in-place ReLU, in-place sum."""

    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride=1):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != 4 * width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, block, depths, width, expansion, classes=1000):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        stages, inputs = [], width
        for index, depth in enumerate(depths):
            out = width << index
            blocks = []
            for place in range(depth):
                blocks.append(block(inputs, out, 2 if index and not place else 1))
                inputs = out * expansion
            stages.append(nn.Sequential(*blocks))
        self.layers = nn.Sequential(*stages)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.layers(x)), 1))


class FunctionalBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class Functional(nn.Module):
    """A small residual net whose activations and pools are functions."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(FunctionalBlock(64, 64, 1), FunctionalBlock(64, 64, 1))
        self.layer2 = nn.Sequential(FunctionalBlock(64, 128, 2), FunctionalBlock(128, 128, 1))
        self.layer3 = nn.Sequential(FunctionalBlock(128, 256, 2), FunctionalBlock(256, 256, 1))
        self.linear = nn.Linear(256, 10)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layer3(self.layer2(self.layer1(out)))
        return self.linear(F.avg_pool2d(out, 16).flatten(1))


class FunctionalSum(nn.Module):
    """A residual net that sums what an activation returns: the trace shows neither."""

    def __init__(self, width=48):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 1, 1)
        self.convs = nn.ModuleList(nn.Conv2d(width, width, 3, 1, 1) for _ in range(6))
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(6))
        self.fc = nn.Linear(width, 100)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for conv, norm in zip(self.convs, self.norms):
            x = x + F.relu(norm(conv(x)))
        return self.fc(x.mean((2, 3)))


def plain_cnn(norm=False, inplace=False):
    layers, inputs = [], 3
    for width in (32, 64, 128, 256):
        for _ in range(2):
            layers.append(nn.Conv2d(inputs, width, 3, padding=1, bias=not norm))
            layers += [nn.BatchNorm2d(width)] if norm else []
            layers.append(nn.ReLU(inplace=inplace))
            inputs = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(256 * 8 * 8, 1024), nn.ReLU(), nn.Dropout(0.5), nn.Linear(1024, 10))


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride, expand=6):
        super().__init__()
        wide = inputs * expand
        self.joins = stride == 1 and inputs == outputs
        self.conv = nn.Sequential(
            nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(inplace=True),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(inplace=True),
            nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
        )

    def forward(self, x):
        return x + self.conv(x) if self.joins else self.conv(x)


def mobile_net():
    blocks, inputs = [], 32
    for outputs, stride in [(24, 2), (24, 1), (48, 2), (48, 1), (48, 1), (96, 2), (96, 1), (160, 2), (160, 1)]:
        blocks.append(InvertedResidual(inputs, outputs, stride))
        inputs = outputs
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.Hardswish(), *blocks,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(160, 1000))


class SqueezeExcite(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)
        self.act, self.gate = nn.SiLU(), nn.Sigmoid()

    def forward(self, x):
        return x * self.gate(self.fc2(self.act(self.fc1(self.avgpool(x)))))


def se_net():
    layers, inputs = [], 3
    for width in (32, 64, 128):
        layers += [nn.Conv2d(inputs, width, 3, 2, 1, groups=1 if inputs == 3 else 4), nn.BatchNorm2d(width), nn.SiLU(),
                   SqueezeExcite(width)]
        inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))


class Dense(nn.Module):
    def __init__(self, width=64, growth=32, layers=6):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 1, 1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width + i * growth) for i in range(layers))
        self.relus = nn.ModuleList(nn.ReLU() for _ in range(layers))
        self.convs = nn.ModuleList(nn.Conv2d(width + i * growth, growth, 3, 1, 1) for i in range(layers))
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(width + layers * growth, 100)

    def forward(self, x):
        x = self.stem(x)
        for norm, relu, conv in zip(self.norms, self.relus, self.convs):
            x = torch.cat([x, conv(relu(norm(x)))], 1)
        return self.fc(self.pool(x).flatten(1))


class UNet(nn.Module):
    def __init__(self, width=32, depth=3, outputs=3, upsample=False):
        super().__init__()

        def double(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                                 nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))

        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(double(3 if i == 0 else widths[i - 1], widths[i]) for i in range(depth))
        self.pool = nn.MaxPool2d(2)
        self.middle = double(widths[-2], widths[-1])
        self.up = nn.ModuleList(
            nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(widths[i + 1], widths[i], 1)) if upsample
            else nn.ConvTranspose2d(widths[i + 1], widths[i], 2, 2) for i in reversed(range(depth)))
        self.merge = nn.ModuleList(double(2 * widths[i], widths[i]) for i in reversed(range(depth)))
        self.head = nn.Conv2d(width, outputs, 1)

    def forward(self, x):
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = self.pool(x)
        x = self.middle(x)
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)


class ConvNext(nn.Module):
    def __init__(self, width=96, depth=4):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.depthwise = nn.ModuleList(nn.Conv2d(width, width, 7, padding=3, groups=width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.wide = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(depth))
        self.acts = nn.ModuleList(nn.GELU() for _ in range(depth))
        self.narrow = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(depth))
        self.norm, self.fc = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.stem(x)
        for conv, norm, wide, act, narrow in zip(self.depthwise, self.norms, self.wide, self.acts, self.narrow):
            x = x + narrow(act(wide(norm(conv(x).permute(0, 2, 3, 1))))).permute(0, 3, 1, 2)
        return self.fc(self.norm(x.mean((2, 3))))


class SelfAttention(nn.Module):
    """Query, key and value in one matrix, and PyTorch's attention."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal = heads, causal

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(width, 2))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.proj(out.transpose(1, 2).reshape(batch, length, width))


class WrittenAttention(nn.Module):
    """Attention in plain products, with the softmax as a function or a module."""

    def __init__(self, width, heads, module):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.proj, self.dropout = nn.Linear(width, width), nn.Dropout(0.1)
        self.softmax = nn.Softmax(-1) if module else None
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t(x).view(batch, length, self.heads, -1).transpose(1, 2) for t in (self.query, self.key, self.value))
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        weights = self.dropout(F.softmax(scores, -1) if self.softmax is None else self.softmax(scores))
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, width))


class WrittenLayer(nn.Module):
    def __init__(self, width, heads, module):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), WrittenAttention(width, heads, module)
        self.norm2, self.fc1, self.act, self.fc2 = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.fc2(self.act(self.fc1(self.norm2(x))))


class WrittenEncoder(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.embedding = nn.Embedding(8000, 256)
        self.layers = nn.ModuleList(WrittenLayer(256, 4, module) for _ in range(4))
        self.head = nn.Linear(256, 8)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


class TextCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(8000, 128)
        self.convs = nn.ModuleList(nn.Conv1d(128, 256, size, padding=size // 2) for size in (3, 4, 5))
        self.relus = nn.ModuleList(nn.ReLU() for _ in range(3))
        self.dropout, self.fc = nn.Dropout(0.5), nn.Linear(768, 4)

    def forward(self, ids):
        x = self.embedding(ids).transpose(1, 2)
        parts = [relu(conv(x)).amax(2) for conv, relu in zip(self.convs, self.relus)]
        return self.fc(self.dropout(torch.cat(parts, 1)))


class Layer(nn.Module):
    def __init__(self, width, heads, causal, dropout=0.0, functional=False):
        super().__init__()
        self.functional = functional
        self.ln1, self.attn = nn.LayerNorm(width), SelfAttention(width, heads, causal)
        self.ln2 = nn.LayerNorm(width)
        if functional:
            self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        else:
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + (self.fc2(F.gelu(self.fc1(self.ln2(x)))) if self.functional else self.mlp(self.ln2(x)))


class Gpt(nn.Module):
    def __init__(self, words=8000, width=256, heads=4, layers=4, positions=1024, tied=False, dropout=0.0,
                 functional=False):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(positions, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Layer(width, heads, True, dropout, functional) for _ in range(layers))
        self.ln_f, self.output = nn.LayerNorm(width), "lm_head" if tied else "head"
        self.add_module(self.output, nn.Linear(width, words, bias=False))
        if tied:
            self.lm_head.weight = self.wte.weight

    def forward(self, ids):
        x = self.drop(self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device)))
        for block in self.blocks:
            x = block(x)
        return getattr(self, self.output)(self.ln_f(x))


class Vit(nn.Module):
    def __init__(self, width=192, heads=3, layers=6, size=224, patch=16, blocks="own"):
        super().__init__()
        self.patch = nn.Conv2d(3, width, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, (size // patch) ** 2 + 1, width))
        if blocks == "own":
            self.blocks = nn.Sequential(*(Layer(width, heads, False) for _ in range(layers)))
        else:
            # Layers of their own: copied parameters are odd without data.
            self.blocks = nn.Sequential(
                *(nn.TransformerEncoderLayer(width, heads, 4 * width, 0.1, "gelu", batch_first=True) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class MhaBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.fc1, self.act, self.fc2 = nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x, x, x, need_weights=False)[0])
        return self.norm2(x + self.fc2(self.act(self.fc1(x))))


def series_transformer():
    return nn.Sequential(nn.Linear(16, 128), MhaBlock(128, 4), MhaBlock(128, 4), nn.Flatten(), nn.Linear(128 * 96, 24))


class Recurrent(nn.Module):
    def __init__(self, kind, words=10000, width=128, hidden=256, layers=2, both=False, classes=5):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.rnn = kind(width, hidden, layers, batch_first=True, bidirectional=both)
        self.fc = nn.Linear(hidden * (2 if both else 1), classes)

    def forward(self, ids):
        return self.fc(self.rnn(self.embedding(ids))[0][:, -1])


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(32, 128, 1, batch_first=True), nn.Linear(128, 8)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


class Scale(nn.Module):
    """A module that no table knows, with a parameter of its own."""

    def __init__(self, width):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * self.gamma


class Swish(nn.Module):
    """A module that no table knows, without parameters."""

    def forward(self, x):
        return x * torch.sigmoid(x)


def odd_mlp():
    return nn.Sequential(nn.Linear(256, 2048), Swish(), Scale(2048), nn.Linear(2048, 2048), Swish(), nn.LayerNorm(2048),
                         nn.Linear(2048, 10))


def mlp(width=2048, depth=3):
    layers = [nn.Linear(784, width), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.1)]
    return nn.Sequential(*layers, nn.Linear(width, 10))


def tabular():
    return nn.Sequential(nn.BatchNorm1d(64), nn.Linear(64, 512), nn.BatchNorm1d(512), nn.LeakyReLU(), nn.Linear(512, 512),
                         nn.ELU(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512), nn.SELU(), nn.Linear(512, 2))


def sound():
    return nn.Sequential(
        nn.Conv1d(1, 64, 10, 5), nn.GroupNorm(8, 64), nn.GELU(), nn.Conv1d(64, 128, 8, 4), nn.BatchNorm1d(128), nn.PReLU(),
        nn.MaxPool1d(4), nn.Conv1d(128, 256, 4, 2), nn.GLU(1), nn.AvgPool1d(2), nn.Flatten(), nn.Linear(128 * 49, 35))


def video():
    return nn.Sequential(
        nn.Conv3d(3, 32, 3, (1, 2, 2), 1), nn.BatchNorm3d(32), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(32, 64, 3, 1, 1),
        nn.BatchNorm3d(64), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 8 * 28 * 28, 101))


def autoencoder():
    return nn.Sequential(
        nn.Conv2d(3, 32, 4, 2, 1), nn.InstanceNorm2d(32), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1), nn.SiLU(),
        nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.Mish(), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Sigmoid())


class Logits(nn.Module):
    """A model of transformers as a module of ids that returns scores."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(ids).logits


def hugging(kind, config, **values):
    import transformers

    return lambda: Logits(getattr(transformers, kind)(getattr(transformers, config)(use_cache=False, **values)))


GPT2 = dict(n_layer=4, n_embd=256, n_head=4, vocab_size=8000, n_positions=512, resid_pdrop=0.1, embd_pdrop=0.1, attn_pdrop=0.0)
LLAMA = dict(num_hidden_layers=4, hidden_size=256, intermediate_size=688, num_attention_heads=4, vocab_size=8000,
             max_position_embeddings=2048)
BERT = dict(num_hidden_layers=4, hidden_size=256, intermediate_size=1024, num_attention_heads=4, vocab_size=8000)

IMAGE, SMALL = [(3, 224, 224)], [(3, 64, 64)]
MODELS = {
    "mlp": (mlp, [(784,)], "classes"),
    "odd-mlp": (odd_mlp, [(256,)], "classes"),
    "tabular": (tabular, [(64,)], "classes"),
    "plain-cnn": (plain_cnn, [(3, 128, 128)], "classes"),
    "plain-cnn-norm": (lambda: plain_cnn(True, True), [(3, 128, 128)], "classes"),
    "resnet18": (lambda: ResNet(Residual, (2, 2, 2, 2), 64, 1), IMAGE, "classes"),
    "resnet50": (lambda: ResNet(Bottleneck, (3, 4, 6, 3), 64, 4), IMAGE, "classes"),
    "functional-cnn": (Functional, SMALL, "classes"),
    "functional-sum": (FunctionalSum, SMALL, "classes"),
    "functional-gpt": (lambda: Gpt(functional=True), [("ids", 8000, 64)], "tokens"),
    "mobile-net": (mobile_net, IMAGE, "classes"),
    "se-net": (se_net, IMAGE, "classes"),
    "dense-net": (Dense, SMALL, "classes"),
    "convnext": (ConvNext, IMAGE, "classes"),
    "unet": (UNet, [(3, 128, 128)], "image"),
    "unet-upsample": (lambda: UNet(24, 2, upsample=True), [(3, 96, 96)], "image"),
    "autoencoder": (autoencoder, [(3, 128, 128)], "image"),
    "sound": (sound, [(1, 16000)], "classes"),
    "video": (video, [(3, 16, 112, 112)], "classes"),
    "vit": (Vit, IMAGE, "classes"),
    "vit-torch": (lambda: Vit(blocks="torch"), IMAGE, "classes"),
    "series-transformer": (series_transformer, [(96, 16)], "classes"),
    "lstm": (lambda: Recurrent(nn.LSTM), [("ids", 10000, 128)], "classes"),
    "gru-both": (lambda: Recurrent(nn.GRU, both=True), [("ids", 10000, 128)], "classes"),
    "rnn": (lambda: Recurrent(nn.RNN, layers=1), [("ids", 10000, 128)], "classes"),
    "forecast": (Forecast, [(96, 32)], "image"),
    "gpt": (Gpt, [("ids", 8000, 64)], "tokens"),
    "gpt-tied": (lambda: Gpt(tied=True, dropout=0.1), [("ids", 8000, 64)], "tokens"),
    "written-attention": (lambda: WrittenEncoder(False), [("ids", 8000, 64)], "classes"),
    "written-softmax": (lambda: WrittenEncoder(True), [("ids", 8000, 64)], "classes"),
    "text-cnn": (TextCnn, [("ids", 8000, 64)], "classes"),
    "hf-gpt2": (hugging("GPT2LMHeadModel", "GPT2Config", **GPT2), [("ids", 8000, 64)], "tokens"),
    "hf-llama": (hugging("LlamaForCausalLM", "LlamaConfig", **LLAMA), [("ids", 8000, 64)], "tokens"),
    "hf-llama-gqa": (hugging("LlamaForCausalLM", "LlamaConfig", **LLAMA, num_key_value_heads=2), [("ids", 8000, 64)], "tokens"),
    "hf-qwen3": (hugging("Qwen3ForCausalLM", "Qwen3Config", **LLAMA, num_key_value_heads=2, head_dim=64),
                 [("ids", 8000, 64)], "tokens"),
    "hf-bert": (hugging("BertForSequenceClassification", "BertConfig", **BERT), [("ids", 8000, 64)], "classes"),
    "hf-vit": (hugging("ViTForImageClassification", "ViTConfig", num_hidden_layers=4, hidden_size=192, intermediate_size=768,
                       num_attention_heads=3), IMAGE, "classes"),
}
