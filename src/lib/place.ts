/** Where something stands in a text: both from 1, the column in UTF-16 units as editors and SARIF count it. */
export interface Place {
  readonly line: number;
  readonly column: number;
}
