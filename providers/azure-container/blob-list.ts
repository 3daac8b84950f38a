/** A page of the names in a container. */
export interface BlobPage {
  readonly names: readonly string[];
  /** Where the next page begins; empty on the last one. */
  readonly next: string;
}

const ENTITIES: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  amp: '&',
  quot: '"',
  apos: "'",
};

/**
 * Reads the answer to a list of blobs; null if it is something else:
 * https://learn.microsoft.com/rest/api/storageservices/list-blobs. Only the names are of use, and a name is the text
 * of an element, so no parser of XML is needed.
 */
export function readBlobPage(xml: string): BlobPage | null {
  if (!xml.includes('<EnumerationResults')) return null;
  const names = [...xml.matchAll(/<Blob><Name>([^<]*)<\/Name>/g)].map(([, name = '']) =>
    plain(name),
  );
  return { names, next: plain(/<NextMarker>([^<]*)<\/NextMarker>/.exec(xml)?.[1] ?? '') };
}

function plain(text: string): string {
  return text.replace(/&(#?\w+);/g, (whole, name: string) => {
    if (name.startsWith('#x')) return String.fromCodePoint(parseInt(name.slice(2), 16));
    if (name.startsWith('#')) return String.fromCodePoint(Number(name.slice(1)));
    return ENTITIES[name] ?? whole;
  });
}
