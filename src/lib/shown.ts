/**
 * A value someone wrote, fit for one line of a message: controls, invisible formatting and line ends become
 * spaces or `?`, and what is longer than `most` characters is cut.
 */
export function shown(value: string, most = 60): string {
  // Nearly every value is short and plain; the classes of Unicode are only looked up for the others.
  if (value.length <= most && isPlain(value)) return value;
  // Cut before cleaning: a value can be megabytes.
  const head = value.slice(0, most * 4);
  const clean = Array.from(head.replace(/[\t\r\n]+/g, " ").replace(/[\p{C}\p{DI}\u2028\u2029]/gu, "?"));
  return clean.length > most || value.length > head.length
    ? `${clean.slice(0, most).join("")}...`
    : clean.join("");
}

/** Whether a text holds characters that no name has: controls, line separators, broken surrogates. */
export function hasControls(text: string): boolean {
  return !isPlain(text) && /[\p{Cc}\p{Cs}\u2028\u2029]/u.test(text);
}

function isPlain(text: string): boolean {
  return /^[\x20-\x7e]*$/.test(text);
}
