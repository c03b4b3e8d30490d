import { type CST, Lexer, Parser } from "yaml";

/** The steps of the `yaml` package's tokenizer (2.9.1, pinned) that are widened here. */
interface LexerInside {
  indentNext: number;
  parseFlowCollection(): Generator<string, string | undefined>;
  parseQuotedScalar(): Generator<string, string | undefined>;
}

/**
 * Tokens of a text in which lines inside `{}`, `[]` and quotes may start at any column, as PyYAML allows.
 * YAML 1.2, which the `yaml` package follows, wants them indented.
 */
export function* lenientTokens(text: string): Generator<CST.Token> {
  const lexer = new Lexer();
  const inside = lexer as unknown as LexerInside;
  for (const step of ["parseFlowCollection", "parseQuotedScalar"] as const) {
    const strict = inside[step].bind(lexer);
    inside[step] = function* () {
      const indent = inside.indentNext;
      inside.indentNext = 0;
      const next = yield* strict();
      // A step that ended the collection has moved on and set its own indent.
      if (inside.indentNext === 0) inside.indentNext = indent;
      return next;
    };
  }
  const parser = new Parser();
  for (const lexeme of lexer.lex(text)) yield* parser.next(lexeme);
  yield* parser.end();
}
