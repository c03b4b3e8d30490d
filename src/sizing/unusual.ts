/** What few recipes need, in one piece: evaluated at first use, and at once. */
export { unmeasuredDropout } from "./dropout.ts";
export { fusedLoss } from "./fused-loss.ts";
export { Gathering } from "./gathered.ts";
export { fusedCaution, sharingNotes } from "./said.ts";
export { headCaution, scoresLoss } from "./scores.ts";
