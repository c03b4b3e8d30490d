import type { FamilyReader } from "../family.ts";
import { AUDIO } from "./audio.ts";
import { bart } from "./bart.ts";
import { BERTS } from "./bert.ts";
import { DEBERTAS } from "./deberta.ts";
import { DELTA_NETS } from "./delta-net.ts";
import { DENSE_LAYER_NORM } from "./dense-layer-norm.ts";
import { DENSE_RMS } from "./dense-rms.ts";
import { FACTORISED } from "./electra.ts";
import { esm } from "./esm.ts";
import { MORE_GEMMA } from "./gemma-more.ts";
import { graniteHybrid } from "./granite-hybrid.ts";
import { lfm2 } from "./lfm2.ts";
import { llama4Text } from "./llama4.ts";
import { MAMBAS } from "./mamba.ts";
import { LATENT } from "./mla.ts";
import { modernbert } from "./modernbert.ts";
import { MOE } from "./moe-families.ts";
import { multimodalFamilies } from "./multimodal-families.ts";
import { nemotronH } from "./nemotron-h.ts";
import { QWEN_VL_TEXT } from "./qwen-vl-text.ts";
import { qwen1 } from "./qwen1.ts";
import { t5 } from "./t5.ts";
import { VISION } from "./vision.ts";
import { whisper } from "./whisper.ts";

/** The families beside the measured dense ones. `lookup` finds the reader of a part, such as a text model. */
export function others(lookup: (type: string) => FamilyReader | null): readonly FamilyReader[] {
  return [
    ...DENSE_RMS,
    ...DENSE_LAYER_NORM,
    ...QWEN_VL_TEXT,
    qwen1,
    ...MORE_GEMMA,
    ...MOE,
    ...LATENT,
    llama4Text,
    ...DELTA_NETS,
    lfm2,
    nemotronH,
    graniteHybrid,
    ...MAMBAS,
    ...BERTS,
    ...FACTORISED,
    modernbert,
    esm,
    ...DEBERTAS,
    t5,
    bart,
    whisper,
    ...AUDIO,
    ...VISION,
    ...multimodalFamilies(lookup),
  ];
}
