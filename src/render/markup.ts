/**
 * A text as the content of an element of HTML, SVG or XML. Two code points that no XML document may hold go. What else
 * is invisible or steers a reader is `printable`'s.
 */
export function escapedMarkup(text: string): string {
  return text
    .replace(/[\ufffe\uffff]/g, "")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}
