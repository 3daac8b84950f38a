/**
 * Judges the OpenAPI document on stdin by OpenAPI's own schemas; in a process of its own, for the
 * validator is an ES module. Prints what is wrong as JSON, `[]` where nothing is.
 */
import { text } from 'node:stream/consumers';
import { Validator } from '@seriousme/openapi-schema-validator';

const { valid, errors } = await new Validator().validate(JSON.parse(await text(process.stdin)));
process.stdout.write(JSON.stringify(valid ? [] : errors));
