/** Finds processes by their parent. */

/** Returns the ids of the processes whose parent is this one. */
export function childrenOf(parent: number): number[] {
  return [...Deno.readDirSync("/proc")].map(({ name }) => Number(name)).filter((id) => {
    try {
      const stat = Deno.readTextFileSync(`/proc/${id}/stat`);
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === parent;
    } catch {
      return false;
    }
  });
}
