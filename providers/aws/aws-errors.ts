import type { ProviderError } from '../provider';

/** An error of AWS, with the HTTP status that says the same. */
export interface AwsError extends ProviderError {
  readonly status: number;
  readonly isQuotaRefusal: boolean;
}

/**
 * AWS answers nearly all errors with status 400, and tells them apart by their code:
 * https://docs.aws.amazon.com/transcribe/latest/APIReference/CommonErrors.html,
 * https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html.
 */
const STATUS_OF_CODES: readonly [status: number, codes: ReadonlySet<string>][] = [
  [
    401,
    new Set([
      'AccessDenied',
      'AccessDeniedException',
      'ExpiredToken',
      'ExpiredTokenException',
      'IncompleteSignature',
      'InvalidAccessKeyId',
      'InvalidClientTokenId',
      'InvalidSignatureException',
      'InvalidToken',
      'MissingAuthenticationToken',
      'MissingAuthenticationTokenException',
      // Of S3: the bucket of the settings is wrong, which is for the operator.
      'NoSuchBucket',
      'NotAuthorized',
      'OptInRequired',
      'PermanentRedirect',
      'RequestExpired',
      'RequestTimeTooSkewed',
      'SignatureDoesNotMatch',
      'UnrecognizedClientException',
    ]),
  ],
  [404, new Set(['NoSuchKey', 'NotFound', 'NotFoundException', 'ResourceNotFoundException'])],
  [409, new Set(['ConflictException', 'OperationAborted'])],
  [
    429,
    new Set([
      'LimitExceededException',
      'RequestLimitExceeded',
      'ServiceQuotaExceededException',
      'SlowDown',
      'Throttling',
      'ThrottlingException',
      'TooManyRequestsException',
    ]),
  ],
];

/** The names that the SDK gives an error whose body has no code, so that another server may have written it. */
const UNNAMED: ReadonlySet<string> = new Set(['Error', 'SyntaxError', 'Unknown', 'UnknownError']);

/** Reads an error that the SDK throws for an answer. Null if the body is not an error of AWS. */
export function readAwsError(error: unknown, status: number): AwsError | null {
  if (!(error instanceof Error) || UNNAMED.has(error.name)) return null;
  const known = STATUS_OF_CODES.find(([, codes]) => codes.has(error.name));
  const [said = status] = known ?? [];
  return {
    code: error.name,
    message: error.message,
    // A 5xx stays one, whatever its code: the request may have been carried out.
    status: status >= 500 ? status : said,
    isQuotaRefusal: said === 429,
  };
}
