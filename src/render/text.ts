/** Longest model name or label that a message repeats. */
export const NAME_LIMIT = 200;

/*
 * Everything a terminal, a log or a line protocol could act on: C0, DEL, C1, line and paragraph separators, marks and
 * overrides of the writing direction, zero-width characters and fillers (Default_Ignorable_Code_Point), lone
 * surrogates. Written as escapes: none of them is visible.
 */
const SPACES = /[\t\n\v\f\r\u0085\u2028\u2029]+/g;
const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
  /[\u0000-\u001f\u007f-\u009f\u061c\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\p{DI}]/gu;

/** A user's text made safe for one line: breaks become a space, what is invisible or steers a terminal goes. */
export function printable(text: string): string {
  // Nearly every text is plain; the wide classes below are costly to set up once a submit.
  if (/^[ -~]*$/.test(text)) return text;
  return text.toWellFormed().replace(SPACES, " ").replace(HIDDEN, "");
}

/** A cleaned text of at most `limit` characters; what is cut is shown by three dots. */
export function cut(text: string, limit = NAME_LIMIT): string {
  // A name can be megabytes long: most of it is never looked at.
  const head = text.slice(0, limit * 16);
  const characters = Array.from(printable(head));
  if (characters.length <= limit && head.length === text.length) return characters.join("");
  return `${characters.slice(0, limit).join("")}...`;
}

/** `219.1`: an amount with the one decimal that every message has. */
export function oneDecimal(amount: number): string {
  return amount.toFixed(1);
}

/** `$1,240.00` */
export function dollars(usd: number): string {
  const [whole = "0", cents = "00"] = usd.toFixed(2).split(".");
  return `$${whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",")}.${cents}`;
}

/** `6`, `0.5`, `1.25`: a quantity without needless decimals. */
export function plain(amount: number): string {
  return String(Number(amount.toFixed(2)));
}

/** `1 card`, `8 cards` */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Without the full stop, so that a sentence can go on. */
export function unstopped(sentence: string): string {
  return sentence.trim().replace(/\.+$/, "");
}

/** Breaks a text at spaces into lines of at most `width` characters; a longer word stands alone. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
