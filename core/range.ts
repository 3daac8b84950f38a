/**
 * A half-open range of integers: `from` belongs to it, `to` does not. Used for plan positions and for
 * bytes of an object. The range is empty if `to <= from`.
 */
export interface Range {
  readonly from: number;
  readonly to: number;
}
