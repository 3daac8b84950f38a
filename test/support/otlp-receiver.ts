import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import protobuf from 'protobufjs';

/** The part of OTLP that tests read, with its field numbers. */
const PROTO = `
  syntax = "proto3";
  message Request { repeated ResourceSpans resource_spans = 1; }
  message Resource { repeated KeyValue attributes = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message ScopeSpans { repeated Span spans = 2; }
  message Span {
    bytes trace_id = 1;
    bytes span_id = 2;
    string trace_state = 3;
    bytes parent_span_id = 4;
    string name = 5;
    int32 kind = 6;
    fixed64 start_time_unix_nano = 7;
    fixed64 end_time_unix_nano = 8;
    repeated KeyValue attributes = 9;
    repeated Event events = 11;
    Status status = 15;
  }
  message Event { string name = 2; repeated KeyValue attributes = 3; }
  message Status { string message = 2; int32 code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue {
    oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; }
  }
`;
const Request = protobuf.parse(PROTO).root.lookupType('Request');

type Attributes = Record<string, string | number | boolean>;

/** A span that was received. Ids are hexadecimal. */
export interface ReceivedSpan {
  readonly service: string;
  /** `service.instance.id`: the process. */
  readonly instance: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first span of a trace. */
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly name: string;
  readonly attributes: Attributes;
  readonly events: readonly { readonly name: string; readonly attributes: Attributes }[];
  /** Status 2. */
  readonly isError: boolean;
  readonly message: string;
  readonly startMs: number;
  readonly endMs: number;
}

/** A collector of traces that tests can look into. */
export interface OtlpReceiver {
  readonly url: string;
  readonly spans: ReceivedSpan[];
  /** While true, exports get no answer. */
  hangs: boolean;
  close(): Promise<void>;
}

/** An OTLP receiver over gRPC on a free port. */
export async function startGrpcReceiver(): Promise<OtlpReceiver> {
  const server = new Server();
  const receiver = { url: '', spans: [] as ReceivedSpan[], hangs: false };
  const path = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
  const asIs = (bytes: Buffer): Buffer => bytes;
  server.addService(
    {
      export: {
        ...{ path, requestStream: false, responseStream: false },
        ...{ requestSerialize: asIs, requestDeserialize: asIs },
        ...{ responseSerialize: asIs, responseDeserialize: asIs },
      },
    },
    {
      export: (
        call: { request: Buffer },
        answer: (error: null, response: Buffer) => void,
      ): void => {
        if (receiver.hangs) return;
        receiver.spans.push(...decode(call.request));
        answer(null, Buffer.alloc(0));
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  receiver.url = `http://127.0.0.1:${port}`;
  return Object.assign(receiver, { close: async () => server.forceShutdown() });
}

/** An OTLP receiver over HTTP with protobuf on a free port; only `/v1/traces` is answered with 200. */
export async function startHttpReceiver(): Promise<OtlpReceiver> {
  const receiver = { url: '', spans: [] as ReceivedSpan[], hangs: false };
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (receiver.hangs) return;
      const isTraces = request.url === '/v1/traces';
      if (isTraces) receiver.spans.push(...decode(Buffer.concat(chunks)));
      response.writeHead(isTraces ? 200 : 404, { 'content-type': 'application/x-protobuf' }).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return Object.assign(receiver, { close });
}

interface WireAttribute {
  readonly key: string;
  readonly value?: Record<string, string | number | boolean>;
}

interface WireSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: WireAttribute[];
  readonly events?: { name: string; attributes?: WireAttribute[] }[];
  readonly status?: { code?: number; message?: string };
}

interface WireRequest {
  readonly resourceSpans?: {
    readonly resource: { readonly attributes: WireAttribute[] };
    readonly scopeSpans: { readonly spans: WireSpan[] }[];
  }[];
}

function decode(bytes: Buffer): ReceivedSpan[] {
  const message = Request.toObject(Request.decode(bytes), { bytes: String, longs: String });
  const { resourceSpans = [] } = message as WireRequest;
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const process = attributesOf(resource.attributes);
    return scopeSpans.flatMap(({ spans }) => spans.map((span) => received(span, process)));
  });
}

function received(span: WireSpan, process: Attributes): ReceivedSpan {
  return {
    service: String(process['service.name']),
    instance: String(process['service.instance.id']),
    traceId: hex(span.traceId),
    spanId: hex(span.spanId),
    parentSpanId: hex(span.parentSpanId ?? ''),
    traceState: span.traceState ?? '',
    name: span.name,
    attributes: attributesOf(span.attributes),
    events: (span.events ?? []).map(({ name, attributes }) => ({
      name,
      attributes: attributesOf(attributes),
    })),
    isError: span.status?.code === 2,
    message: span.status?.message ?? '',
    startMs: Number(span.startTimeUnixNano) / 1e6,
    endMs: Number(span.endTimeUnixNano) / 1e6,
  };
}

function hex(base64: string): string {
  return Buffer.from(base64, 'base64').toString('hex');
}

function attributesOf(given: readonly WireAttribute[] = []): Attributes {
  const entries = given.map(({ key, value = {} }) => {
    const [kind, content = ''] = Object.entries(value)[0] ?? [];
    return [key, kind === 'intValue' ? Number(content) : content];
  });
  return Object.fromEntries(entries) as Attributes;
}
