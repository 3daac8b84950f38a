/** The fields of one response. Names are given in lower case, and values come without the white space around them. */
export interface HeaderFields {
  /** The value of the first field of this name, or null. */
  first(name: string): string | null;
  /** All values of a field that is a list, joined by commas in their order; null if there is none. */
  joined(name: string): string | null;
  /** Name, value, name, value, …: order, case and repetitions as received. */
  pairs(): string[];
}
