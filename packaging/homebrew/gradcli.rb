class Gradcli < Formula
  include Language::Python::Virtualenv

  desc "Evaluate, differentiate and inspect tensor expressions from the shell"
  url "https://pypi.org/packages/source/g/gradcli/gradcli-0.3.0.tar.gz"
  sha256 "FILL_IN_AT_RELEASE"
  license "MIT"

  depends_on "numpy"
  depends_on "python@3.13"

  # The resources of click, lark and rich: brew update-python-resources gradcli

  def install
    virtualenv_install_with_resources
  end

  test do
    assert_equal "x.grad = [0, 4, 8, 12]", shell_output("#{bin}/gradcli grad '2*dot(x,x)' --x 0,1,2,3").strip
  end
end
