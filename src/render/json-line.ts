/** What JSON leaves as it is and a terminal acts upon: DEL, C1, marks of direction, what is invisible. */
const STEERING = /[\u007f-\u009f\u2028\u2029\p{DI}]/gu;

/** A value as JSON in which such characters stand as escapes: it reads back the same, and steers nobody's terminal. */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value);
  if (/^[ -~]*$/.test(text)) return text;
  return text.replace(STEERING, (char) =>
    [...Array(char.length).keys()]
      .map((at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}
