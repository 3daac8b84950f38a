/** A series that a PromQL expression selects: its name and its label matchers. */
export interface Selector {
  readonly name: string;
  readonly matchers: readonly Matcher[];
}

/** One matcher, such as `status=~"retry|exhausted"`. */
export interface Matcher {
  readonly label: string;
  readonly operator: '=' | '!=' | '=~' | '!~';
  readonly value: string;
}

/** Words of the language that are not followed by a parenthesis. */
const KEYWORDS = new Set(['and', 'or', 'unless', 'offset', 'bool', 'inf', 'nan']);
const LABEL_LISTS = /\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
const STRINGS = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g;

/** The series that an expression selects. Names of functions, labels and Grafana variables are left out. */
export function selectorsOf(expression: string): Selector[] {
  const text = expression.replace(LABEL_LISTS, ' ').replace(/\[[^\]]*\]/g, ' ');
  const found = text.matchAll(/([a-zA-Z_:][\w:]*)\s*(\{[^}]*\}|\()?/g);
  const braces = [...text.matchAll(/\{[^}]*\}/g)];
  return [...found]
    .filter(({ index }) => !isInside(braces, index) && !isInString(text, index))
    .filter(
      ([, name = '', tail = '']) => !tail.startsWith('(') && !KEYWORDS.has(name.toLowerCase()),
    )
    .map(([, name = '', tail = '']) => ({ name, matchers: matchersOf(tail) }));
}

/** Labels that an expression groups or matches by. */
export function groupingLabelsOf(expression: string): string[] {
  return [...expression.matchAll(LABEL_LISTS)]
    .flatMap(([, , list = '']) => list.split(','))
    .map((label) => label.trim())
    .filter((label) => label !== '');
}

/** The values that a matcher names: one, or the alternatives of `a|b`. None if it is a pattern. */
export function valuesOf({ operator, value }: Matcher): string[] {
  const values = operator.endsWith('~') ? value.split('|') : [value];
  return values.every((one) => /^[\w /-]+$/.test(one)) ? values : [];
}

function matchersOf(braces: string): Matcher[] {
  const found = braces.matchAll(/([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"/g);
  return [...found].map(([, label = '', operator = '=', value = '']) => ({
    label,
    operator: operator as Matcher['operator'],
    value,
  }));
}

function isInside(spans: readonly RegExpMatchArray[], at: number): boolean {
  return spans.some(({ index = 0, 0: text }) => at > index && at < index + text.length);
}

function isInString(text: string, at: number): boolean {
  return [...text.matchAll(STRINGS)].some(
    ({ index, 0: quoted }) => at > index && at < index + quoted.length,
  );
}
