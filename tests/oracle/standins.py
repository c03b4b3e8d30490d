"""Models whose code is not part of transformers, built of classes that are.

Their own code comes with their checkpoints and is never run. InternLM 1, 2 and 3 have llama's layers: the first and the
third with biases of their own, the second with one matrix for queries, keys and values, ordered by key head. Only what
differs is written here.

Measured: llama's classes with that attention. Not measured: the checkpoints' own code, where it does otherwise.
"""
import guard  # noqa: F401  (before torch)
import torch

KEYS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size",
        "max_position_embeddings", "tie_word_embeddings", "hidden_act", "head_dim")
INTERNLM = ("internlm", "internlm2", "internlm3")


def config_of(raw):
    """The config object and the class that stand for a config.json, or None."""
    if raw["model_type"] not in INTERNLM:
        return None
    from transformers import LlamaConfig, LlamaForCausalLM

    bias = raw.get("bias", raw["model_type"] == "internlm")
    config = LlamaConfig(**{key: raw[key] for key in KEYS if raw.get(key) is not None})
    config.stands_for = raw["model_type"]
    config.out_bias = bias
    config.attention_bias = raw.get("qkv_bias", False) if raw["model_type"] == "internlm3" else bias
    config.mlp_bias = raw["model_type"] == "internlm3" and bias
    return config, LlamaForCausalLM


def changes(config):
    """(owner, name, value) of what differs from the classes that stand in."""
    if getattr(config, "stands_for", None) not in INTERNLM:
        return []
    import transformers.models.llama.modeling_llama as llama

    class Attention(llama.LlamaAttention):
        def __init__(self, config, layer_idx):
            super().__init__(config, layer_idx)
            inner = config.num_attention_heads * self.head_dim
            self.o_proj = torch.nn.Linear(inner, config.hidden_size, bias=config.out_bias)

    class Grouped(Attention):
        def __init__(self, config, layer_idx):
            super().__init__(config, layer_idx)
            del self.q_proj, self.k_proj, self.v_proj
            self.wo = self.o_proj
            del self.o_proj
            rows = (config.num_attention_heads + 2 * config.num_key_value_heads) * self.head_dim
            self.wqkv = torch.nn.Linear(config.hidden_size, rows, bias=config.attention_bias)

        def forward(self, hidden_states, position_embeddings=None, attention_mask=None, cache=None, **kwargs):
            shape = hidden_states.shape[:-1]
            groups = self.num_key_value_groups
            qkv = self.wqkv(hidden_states).view(*shape, -1, 2 + groups, self.head_dim)
            query = qkv[..., :groups, :].reshape(*shape, -1, self.head_dim).transpose(1, 2)
            key = qkv[..., -2, :].transpose(1, 2)
            value = qkv[..., -1, :].transpose(1, 2)
            query, key = llama.apply_rotary_pos_emb(query, key, *position_embeddings)
            attend = llama.ALL_ATTENTION_FUNCTIONS.get_interface(
                self.config._attn_implementation, llama.eager_attention_forward)
            out, weights = attend(self, query, key, value, attention_mask, dropout=0.0, scaling=self.scaling, **kwargs)
            return self.wo(out.reshape(*shape, -1).contiguous()), weights

    return [(llama, "LlamaAttention", Grouped if config.stands_for == "internlm2" else Attention)]
