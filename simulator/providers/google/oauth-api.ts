import { NightshiftError } from '../../../core/errors';
import { isJsonObject } from '../../../core/openai/json-object';
import { jsonAnswer, type ProviderAnswer } from '../answer';
import { routeIn, type ApiCall, type FakeApi, type RouteEntry } from '../fake-api';
import { issueToken } from './access-token';

const ROUTES: readonly RouteEntry[] = [[/^POST \/token$/, 'tokens.create', createToken]];
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const LIFETIME_SEC = 3_599;
/** Google allows for clocks that differ. */
const SKEW_SEC = 300;

/**
 * Google's token endpoint for service accounts (https://developers.google.com/identity/protocols/oauth2/service-account).
 * It takes any account, and does not check signatures.
 */
export const GOOGLE_OAUTH_API: FakeApi = {
  prefix: 'google-oauth',
  findRoute: (method, path) => routeIn(ROUTES, method, path),
  keyOf: () => null,
  errorAnswer: ({ httpStatus, message, apiCode }) =>
    jsonAnswer({ error: apiCode ?? 'invalid_grant', error_description: message }, httpStatus),
};

function createToken(call: ApiCall): ProviderAnswer {
  const form = new URLSearchParams(call.body.toString('utf8'));
  if (form.get('grant_type') !== GRANT) {
    throw refused(
      `Invalid grant_type: ${String(form.get('grant_type'))}`,
      'unsupported_grant_type',
    );
  }
  const keyId = keyIdIn(form.get('assertion') ?? '', call);
  const { keys } = call.state.settings;
  if (keys.length > 0 && !keys.includes(keyId)) throw refused('Invalid JWT Signature.');
  return jsonAnswer({
    access_token: issueToken(keyId),
    expires_in: LIFETIME_SEC,
    token_type: 'Bearer',
  });
}

/** The id of the key in an assertion, after the checks of its claims. */
function keyIdIn(assertion: string, { baseUrl, nowMs }: ApiCall): string {
  const [header, claims] = assertion.split('.').map(decoded);
  if (header?.['alg'] !== 'RS256' || claims === undefined) throw refused('Invalid JWT.');
  const { iss, scope, aud, iat, exp } = claims;
  if (typeof iss !== 'string' || typeof scope !== 'string' || scope === '') {
    throw refused('Invalid JWT: Failed audience or scope check.', 'invalid_scope');
  }
  if (aud !== `${baseUrl}/token`) throw refused('Invalid JWT: Failed audience check.');
  const nowSec = nowMs / 1_000;
  const isTimely =
    Number(iat) <= nowSec + SKEW_SEC && Number(exp) > nowSec && Number(exp) - Number(iat) <= 3_600;
  if (!isTimely) throw refused('Invalid JWT: Token must be a short-lived token.');
  return String(header['kid']);
}

function decoded(part: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function refused(message: string, apiCode = 'invalid_grant'): NightshiftError {
  return new NightshiftError('invalid_request', message, { apiCode });
}
