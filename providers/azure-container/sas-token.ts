import type { ApiKeyFile } from '../../platform/api-key-file';
import { openCredential } from '../credential';
import { maskedSignatures } from '../signed-urls';

/** A token (SAS) that opens a container. */
export interface SasToken {
  /** As the query of an address, without `?`. The file is read for each call. */
  current(): string;
  /** A text without the signatures of this token and of all addresses. */
  mask(text: string): string;
}

/**
 * Opens the token in a file: https://learn.microsoft.com/azure/storage/common/storage-sas-overview.
 * @throws config_invalid if the file cannot be read or does not hold exactly one token
 */
export function openSasToken(file: ApiKeyFile): SasToken {
  const credential = openCredential(file);
  const signatures = new Set<string>();
  const current = (): string => {
    const token = credential.current().replace(/^\?/, '');
    signatures.add(new URLSearchParams(token).get('sig') ?? token);
    return token;
  };
  current();
  return {
    current,
    mask: (text) => {
      const masked = [...signatures].reduce(
        (rest, signature) => rest.replaceAll(signature, '***'),
        credential.mask(text),
      );
      return maskedSignatures(masked);
    },
  };
}
