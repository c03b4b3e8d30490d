/** The programs that only some families need, behind one door: the usual decoders start without them. */
export { geluErf, geluFast, geluFunction, xielu } from "./activations.ts";
export { beside, forwardBeside } from "./beside.ts";
export { experts, forwardMixture } from "./experts.ts";
export { mixer } from "./mixer.ts";
export { withSinks } from "./sinks.ts";
