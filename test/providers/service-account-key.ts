import { generateKeyPairSync } from 'node:crypto';

const PEM = { type: 'pkcs8', format: 'pem' } as const;
const pairs = new Map<string, string>();

/** The private key with an id, as PEM. The same for the same id. */
export function privateKey(keyId: string): string {
  const known = pairs.get(keyId);
  if (known !== undefined) return known;
  const pem = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey.export(PEM);
  pairs.set(keyId, pem.toString());
  return pem.toString();
}

/** The file of a service account. Simulated providers take the id of its key for the key. */
export function serviceAccountKey(keyId: string, tokenUri: string): string {
  return JSON.stringify({
    type: 'service_account',
    project_id: 'project-1',
    private_key_id: keyId,
    private_key: privateKey(keyId),
    client_email: 'nightshift@project-1.iam.gserviceaccount.com',
    client_id: '1',
    token_uri: tokenUri,
  });
}
