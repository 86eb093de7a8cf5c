/**
 * Where the project is published. `PUBLICATION` is the only place that says so: the packages, the
 * documents and the release follow it. After a change run `deno task generate`.
 */

/** Where the project is published. */
export interface Publication {
  /** The address of the repository, such as "https://github.com/owner/name". Null: it has none. */
  repository: string | null;
  /**
   * Whether the registries have a version. Until then the documents make the packages in a clone,
   * because somebody else could publish packages of these names.
   */
  is_published: boolean;
}

export const PUBLICATION: Publication = { repository: null, is_published: false };

/** A package.json, by its members. */
export type Manifest = Readonly<Record<string, unknown>>;

/**
 * Returns a package.json as registries get it: without `private`, which keeps npm from publishing
 * the sources, and with the addresses of the project.
 * @param folder the folder of the package in the repository
 */
export function publishedManifest(manifest: Manifest, folder: string, repository: string | null) {
  const { private: _, ...members } = manifest;
  if (repository === null) return members;
  return {
    ...members,
    repository: { type: "git", url: `git+${repository}.git`, directory: folder },
    homepage: `${repository}#readme`,
    bugs: `${repository}/issues`,
  };
}

/**
 * Returns a document with absolute links, for readers outside the repository.
 * @param address the address of the document in the repository
 */
export function withAbsoluteLinks(document: string, address: string): string {
  return document.replace(
    /\]\((?![a-z]+:|#)([^)\s]+)\)/g,
    (_, target) => `](${new URL(target, address)})`,
  );
}
