/** Texts of members that mean the same in every resource, so that no schema repeats them. */

import { Instant } from "../../../shared/schema/values.ts";

type Schema = Record<string, unknown>;

/** Texts of members whose schema has no text. */
const TEXTS: Readonly<Record<string, string>> = {
  id: "Id of the resource. Paths, and `starting_after` of lists, take it",
  livemode: "True for a resource of a live key, false in a sandbox",
  metadata: "Your own data, as the last request set it",
  api_version: "Version of the API whose form the resource has",
};

/** Texts of times, before the words that give their form. */
const TIMES: Readonly<Record<string, string>> = {
  created_at: "Time of creation",
  updated_at: "Time of the last change",
  completed_at: "Time of completion; null before it",
  cancelled_at: "Time of the cancellation; null without one",
  revoked_at: "Time of the revocation; null without one",
  expires_at: "Time of the end",
  next_attempt_at: "Time of the next attempt; null if none is planned",
  at: "Time of the attempt",
};

/** Adds the texts to a JSON Schema and to all schemas inside it. */
export function describeFields(schema: unknown): void {
  if (typeof schema !== "object" || schema === null) return;
  const { properties } = schema as { properties?: Record<string, Schema> };
  for (const [name, member] of Object.entries(properties ?? {})) describe(name, member);
  for (const value of Object.values(schema)) describeFields(value);
}

function describe(name: string, member: Schema): void {
  // A reference has the text of its component.
  if (JSON.stringify(member).includes('"$ref"') && name !== "metadata") return;
  const form = Instant.description!;
  const is_time = JSON.stringify(member.anyOf ?? "").includes(form);
  const text = fieldText(name, (member.description ?? (is_time ? form : undefined)) as string);
  if (text !== undefined && (text !== form || !is_time)) member.description = text;
}

export function fieldText(name: string, own: string | undefined): string | undefined {
  if (own === undefined) return TEXTS[name];
  return own === Instant.description && TIMES[name] ? `${TIMES[name]}. ${own}` : own;
}
